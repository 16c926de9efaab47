"""The gateway before a real vLLM: its models are found, three protocols pass, usage and readiness are right."""

import json
from contextlib import ExitStack
from pathlib import Path

import openai
import pytest

from tests.conftest import DemoServer
from tests.fakes.wrong_server import Reply, answering
from tests.gateway.process import KEY, gateway, until

ASK = [{"role": "user", "content": "Say hi."}]


@pytest.mark.vllm
def test_a_real_engine_behind_the_gateway(demo_server: DemoServer, tmp_path: Path) -> None:
    with gateway(tmp_path, "local: false\n", "--back-end", demo_server.base_url) as running:
        until(lambda: demo_server.model.encode() in running.ask("GET", "/v1/models")[2], "the engine's model")
        entry = json.loads(running.ask("GET", f"/v1/models/{demo_server.model}")[2])
        assert entry["max_model_len"] == demo_server.max_model_len
        chat = {"model": demo_server.model, "max_tokens": 4, "messages": ASK}
        for path, body in (
            ("/v1/chat/completions", chat),
            ("/v1/messages", chat),
            ("/v1/responses", {"model": demo_server.model, "max_output_tokens": 4, "input": "Say hi."}),
        ):
            status, _, answer = running.ask("POST", path, body)
            assert (status, answer[:1]) == (200, b"{"), answer
        status, headers, stream = running.ask("POST", "/v1/chat/completions", {**chat, "stream": True})
        assert headers["content-type"].startswith("text/event-stream")
        assert stream.endswith(b"data: [DONE]\n\n")
        assert b'"usage":{' not in stream  # asked of the engine, and not shown to who did not ask
        page = running.ask("GET", "/metrics")[2].decode()
        assert f'uncounted_total{{model="{demo_server.model}",back_end="back-end-1"}} 0' in page
        assert running.ask("GET", "/readyz")[0] == 200


@pytest.mark.vllm
def test_responses_that_a_real_engine_keeps(demo_server: DemoServer, tmp_path: Path) -> None:
    """The engine is one of two replicas, of which the other keeps nothing."""
    root = demo_server.base_url.removesuffix("/v1")
    with ExitStack() as stack:
        other = stack.enter_context(answering(lambda _, path, *more: Reply(200 if path == "/health" else 404)))
        config = {
            "local": False,
            "back_ends": {"other": {"url": other, "kind": "vllm"}, "engine": {"url": root, "kind": "vllm"}},
            "models": {"m": {"targets": [{"back_end": n, "model": demo_server.model} for n in ("other", "engine")]}},
        }
        running = stack.enter_context(gateway(tmp_path, json.dumps(config)))
        url = f"http://127.0.0.1:{running.port}/v1"
        client = stack.enter_context(openai.OpenAI(base_url=url, api_key=KEY, max_retries=0))
        first = client.responses.create(model="m", input="Say hi.", max_output_tokens=4)
        found = client.responses.retrieve(first.id)
        assert (found.id, found.model, found.output_text) == (first.id, "m", first.output_text)
        after = client.responses.create(model="m", input="Again.", max_output_tokens=4, previous_response_id=first.id)
        assert after.usage is not None
        assert first.usage is not None
        assert after.usage.input_tokens > first.usage.input_tokens  # the turn before stands in the prompt
        with pytest.raises(openai.NotFoundError):
            client.responses.create(model="m", input="Again.", previous_response_id="resp_none")
        with pytest.raises(openai.BadRequestError, match="synchronous"):
            client.responses.cancel(first.id)
