// openai-node's own behaviours, against the gateway at TRIMTAB_URL with TRIMTAB_KEY; run by test_openai_node.py.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI, { toFile } from 'openai';
import { makeParseableResponseFormat } from 'openai/lib/parser';

const TEXT = 'Hello there, wörld 你好!';
const client = new OpenAI({
  baseURL: `${process.env.TRIMTAB_URL}/v1`, apiKey: process.env.TRIMTAB_KEY, maxRetries: 0, timeout: 20_000,
});
const chat = (content, more = {}, options = {}) =>
  client.chat.completions.create({ model: 'm', messages: [{ role: 'user', content }], ...more }, options);
const tools = [{
  type: 'function',
  function: {
    name: 'get_weather', strict: true,
    parameters: {
      type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false,
    },
  },
}];
const person = { type: 'json_schema', json_schema: { name: 'person', strict: true, schema: { type: 'object' } } };

test('chat', async () => {
  const found = await chat('hello');
  assert.equal(found.choices[0].message.content, TEXT);
  assert.equal(found.usage.completion_tokens, 5);
});

test('stream', async () => {
  let text = '';
  for await (const chunk of await chat('hello', { stream: true })) {
    text += chunk.choices[0].delta.content ?? '';
    assert.equal(chunk.usage ?? null, null);
  }
  assert.equal(text, TEXT);
});

test('stream with usage', async () => {
  const chunks = await Array.fromAsync(await chat('hello', { stream: true, stream_options: { include_usage: true } }));
  assert.deepEqual([chunks.at(-1).choices, chunks.at(-1).usage.prompt_tokens], [[], 7]);
});

test('tool, whole and streamed', async () => {
  const whole = (await chat('tool', { tools })).choices[0];
  const runner = client.chat.completions.stream({ model: 'm', messages: [{ role: 'user', content: 'tool' }], tools });
  for (const choice of [whole, (await runner.finalChatCompletion()).choices[0]]) {
    assert.equal(choice.finish_reason, 'tool_calls');
    assert.deepEqual(JSON.parse(choice.message.tool_calls[0].function.arguments), { city: 'Paris' });
  }
});

test('a tool that is run', async () => {
  const run = async ({ city }) => `hello from ${city} by node`;
  const runner = client.chat.completions.runTools({
    model: 'm', messages: [{ role: 'user', content: 'tool' }],
    tools: [{ type: 'function', function: { ...tools[0].function, function: run, parse: JSON.parse } }],
  });
  assert.equal(await runner.finalContent(), TEXT);
});

test('structured output', async () => {
  const response_format = makeParseableResponseFormat(person, JSON.parse);
  const messages = [{ role: 'user', content: 'json' }];
  const found = await client.chat.completions.parse({ model: 'm', messages, response_format });
  assert.deepEqual(found.choices[0].message.parsed, { name: 'Ada', age: 36 });
});

for (const [text, kind, status] of [
  ['bad', OpenAI.BadRequestError, 400], ['unprocessable', OpenAI.UnprocessableEntityError, 422],
  ['busy', OpenAI.RateLimitError, 429], ['broken', OpenAI.InternalServerError, 500],
]) {
  test(`error ${status}`, async () => {
    await assert.rejects(chat(text), (error) => {
      assert.ok(error instanceof kind);
      assert.deepEqual([error.status, error.error.message], [status, `the model says ${status}`]);
      return true;
    });
  });
}

test('a wrong key, an unknown model', async () => {
  await assert.rejects(client.withOptions({ apiKey: 'sk-wrong-key' }).models.list(), OpenAI.AuthenticationError);
  await assert.rejects(chat('hello', { model: 'no-such-model' }), OpenAI.NotFoundError);
});

test('a 429 is tried again after the time that the model named', async () => {
  const begun = performance.now();
  const found = await chat('twice openai-node', {}, { maxRetries: 2 });
  assert.equal(found.choices[0].message.content, TEXT);
  assert.ok(performance.now() - begun < 370); // by retry-after-ms; without it openai-node waits 375 ms at least
});

test('a time-out', async () => {
  await assert.rejects(chat('silent openai-node', {}, { timeout: 300 }), OpenAI.APIConnectionTimeoutError);
});

test('a stream that is left', async () => {
  const stream = await chat('stuck openai-node', { stream: true });
  for await (const chunk of stream) { assert.equal(chunk.choices[0].delta.role, 'assistant'); break; }
  assert.ok(stream.controller.signal.aborted);
});

test('a stream that breaks is no whole answer', async () => {
  await assert.rejects(async () => Array.fromAsync(await chat('cut', { stream: true })));
});

test('an error within a stream', async () => {
  await assert.rejects(async () => Array.fromAsync(await chat('fails', { stream: true })), /the model says 500/);
});

test('raw responses', async () => {
  const asked = chat('hello', {}, { headers: { 'X-Request-Id': 'mine-3' } });
  const { data, response, request_id } = await asked.withResponse();
  assert.equal(response.headers.get('x-of-the-model'), 'yes');
  assert.equal(request_id, 'mine-3');
  assert.equal(data.choices[0].message.content, TEXT);
  const raw = await chat('hello', { stream: true }).asResponse();
  assert.match(await raw.text(), /^data: .*\n\ndata: \[DONE\]\n\n$/s);
});

test('embeddings', async () => {
  const found = await client.embeddings.create({ model: 'm', input: ['one', 'two'] });
  assert.deepEqual(found.data.map((item) => item.embedding), [[0.25, -0.5, 1], [0.25, -0.5, 1]]);
});

test('models', async () => {
  const cards = await Array.fromAsync(client.models.list());
  assert.ok(cards.some((card) => card.id === 'm'));
});

test('responses, whole and streamed', async () => {
  assert.equal((await client.responses.create({ model: 'm', input: 'hello' })).output_text, TEXT);
  const stream = client.responses.stream({ model: 'm', input: 'hello' });
  const kinds = (await Array.fromAsync(stream)).map((event) => event.type);
  assert.deepEqual([kinds[0], kinds.at(-1)], ['response.created', 'response.completed']);
  assert.equal((await stream.finalResponse()).output_text, TEXT);
});

test('speech', async () => {
  const file = await toFile(Buffer.from('RIFF0000WAVE'), 'a.wav');
  assert.equal((await client.audio.transcriptions.create({ model: 'm', file })).text, 'what was said');
});
