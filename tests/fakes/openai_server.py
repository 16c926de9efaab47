"""A small OpenAI-compatible server on a real socket, in a thread, that misbehaves as its knobs say."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

TEMPLATE_TOKENS = 9
WORDS = ("Hello", " there", ",", " 你好", " friend")


@dataclass
class Knobs:
    """How the server behaves; one word is one token, a chat adds `TEMPLATE_TOKENS`."""

    models: tuple[str, ...] = ("demo",)
    context: int = 512
    state_context: bool = True
    prefix: str = "/v1"
    key: str | None = None
    tokenize: bool = True
    chat: bool = True
    chat_template: bool = True
    completions: bool = True
    embeddings_only: bool = False  # as vLLM 0.6 to 0.10 with an embedding model: 400 at both endpoints
    open_models: bool = False  # the model list asks for no key
    words_to_tokens: float = 1.0
    cuts_prompts: bool = False
    refuse_status: int = 400
    refuse_style: str = "vllm"  # vllm, openai, llama.cpp, text, mute
    answer: tuple[str, ...] = WORDS
    finish_reason: str | None = "length"
    usage: bool = True
    usage_factor: float = 1.0  # it tells so many times the tokens that it sent
    streams: bool = True  # it answers whole although a stream was asked for
    empty_after: int = 0  # generations with text; those after it hold none
    fail_status: int = 0  # every generation answers with it
    fail_streams_above: int = 0  # more streams at once than this end with an error event
    hang_streams: bool = False
    pings_while_hanging: bool = False
    cut_streams: bool = False
    dies_after: int = 0  # generations answered before the socket closes for good
    restarts: bool = False  # its process looks younger at each look
    old_parameters: bool = True  # takes max_tokens and temperature
    models_page: str = "json"  # json, html, redirect, missing, text, empty, 503, tls-notice
    metrics: bool = True
    vllm_metrics: bool = True
    preemptions_per_request: float = 0.0
    errors_per_request: int = 0
    crlf: bool = False
    tools: str = "named"  # named (no parser for auto, as vLLM without its flags), auto, words, left, garbage, refused
    structured: str = "valid"  # valid, ignored, refused, cut
    embeddings: str = ""  # "" (none), good, zeros, same, shuffled, cuts, empty
    recalls: int = 5  # of the facts that it is asked for, how many it tells
    usage_lie: str = ""  # prompt, answer, more, constant, stream
    buffers_streams_s: float = 0.0  # all pieces at once after it
    keeps_running: bool = False  # requests whose client left stay in its counters
    prefill_s: float = 0.0  # a prompt of more than 200 tokens stops all others for so long
    leaks_kv: bool = False


@dataclass
class Seen:
    """What the server saw."""

    bodies: list[dict[str, Any]] = field(default_factory=list)
    generations: int = 0
    streams: int = 0
    most_streams: int = 0
    disconnects: int = 0
    looks: int = 0
    recalled: int = 0
    kept: int = 0
    streaming: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)


class FakeServer:
    """The ASGI app and its knobs; `base_url` is set once it listens."""

    def __init__(self, knobs: Knobs) -> None:
        self.knobs, self.seen, self.base_url = knobs, Seen(), ""
        self.server: uvicorn.Server | None = None
        k = knobs
        routes = [Route(f"{k.prefix}/models", self.models), Route("/tokenize", self.tokenize, methods=["POST"])]
        if k.metrics:
            routes.append(Route("/metrics", self.metrics))
        if k.chat:
            routes.append(Route(f"{k.prefix}/chat/completions", self.generate, methods=["POST"]))
        if k.completions:
            routes.append(Route(f"{k.prefix}/completions", self.generate, methods=["POST"]))
        if k.embeddings:
            routes.append(Route(f"{k.prefix}/embeddings", self.embed, methods=["POST"]))
        self.busy_until = 0.0
        self.app = Starlette(routes=routes)

    def allowed(self, request: Request) -> bool:
        return self.knobs.key is None or request.headers.get("authorization") == f"Bearer {self.knobs.key}"

    async def models(self, request: Request) -> Response:
        page = self.knobs.models_page
        if page == "html":
            return HTMLResponse("<!DOCTYPE html><title>Sign in</title>")
        if page == "redirect":
            return RedirectResponse("https://login.example/", 302)
        if page == "missing":
            return JSONResponse({"detail": "Not Found"}, 404)
        if page == "text":
            return PlainTextResponse("it works")
        if page == "503":
            return JSONResponse({"error": {"message": "loading the model", "type": "unavailable"}}, 503)
        if page == "tls-notice":
            return HTMLResponse("<html>400 The plain HTTP request was sent to HTTPS port</html>", 400)
        if not self.knobs.open_models and not self.allowed(request):
            return JSONResponse({"error": "Unauthorized"}, 401)
        extra = {"max_model_len": self.knobs.context} if self.knobs.state_context else {}
        names = () if page == "empty" else self.knobs.models
        return JSONResponse({"object": "list", "data": [{"id": n, "object": "model", **extra} for n in names]})

    async def tokenize(self, request: Request) -> Response:
        if not self.knobs.tokenize:
            return JSONResponse({"detail": "Not Found"}, 404)
        return JSONResponse({"count": self.count(await request.json()), "max_model_len": self.knobs.context})

    async def metrics(self, request: Request) -> Response:
        if not self.knobs.vllm_metrics:
            return PlainTextResponse("python_info 1.0\n")
        self.seen.looks += 1
        n, labels = self.seen.generations, 'engine="0",model_name="demo"'
        start = 1.0e9 + (self.seen.looks if self.knobs.restarts else 0)
        lines = [
            "# TYPE vllm:num_preemptions_total counter",
            f"process_start_time_seconds {start}",
            f"vllm:num_preemptions_total{{{labels}}} {n * self.knobs.preemptions_per_request}",
            f'vllm:request_success_total{{{labels},finished_reason="length"}} {n}',
            f'vllm:request_success_total{{{labels},finished_reason="error"}} {n * self.knobs.errors_per_request}',
            f"vllm:num_requests_running{{{labels}}} {self.seen.streams + self.seen.kept}",
            f"vllm:kv_cache_usage_perc{{{labels}}} {self.kv_usage()}",
            'vllm:cache_config_info{block_size="16",gpu_memory_utilization="0.9",num_gpu_blocks="96"} 1.0',
        ]
        return PlainTextResponse("\n".join(lines) + "\n")

    def kv_usage(self) -> float:
        return 0.25 if self.seen.streams or self.knobs.leaks_kv else 0.0

    def count(self, body: dict[str, Any]) -> int:
        if "messages" in body:
            return TEMPLATE_TOKENS + self.tokens(body["messages"][0]["content"])
        return self.tokens(body["prompt"])

    def tokens(self, text: str) -> int:
        return round(sum(len(w) > 4 for w in text.split()) * (self.knobs.words_to_tokens - 1)) + len(text.split())

    def refusal(self, body: dict[str, Any]) -> Response | None:
        k = self.knobs
        if k.fail_status:
            return JSONResponse({"error": {"message": "broken", "type": "server_error"}}, k.fail_status)
        if k.embeddings_only:
            api = "Chat Completions" if "messages" in body else "Completions"
            text = f"The model does not support {api} API"
            return JSONResponse({"object": "error", "message": text, "type": "BadRequestError", "code": 400}, 400)
        if body["model"] not in k.models:
            text = f"The model `{body['model']}` does not exist."
            return JSONResponse({"error": {"message": text, "type": "NotFoundError", "param": "model"}}, 404)
        if not k.old_parameters and ("max_tokens" in body or "temperature" in body):
            name = "max_tokens" if "max_tokens" in body else "temperature"
            text = f"Unsupported parameter: '{name}'. Use 'max_completion_tokens' instead."
            if name == "temperature":
                text = "Unsupported value: 'temperature' does not support 0."
            return JSONResponse({"error": {"message": text, "param": name, "code": "unsupported"}}, 400)
        if "messages" in body and not k.chat_template:
            text = "As of transformers v4.44, default chat template is no longer allowed, so you must provide one"
            return JSONResponse({"object": "error", "message": text, "type": "BadRequestError", "code": 400}, 400)
        if self.count(body) > k.context and not k.cuts_prompts and k.refuse_status:
            return self.too_long(self.count(body))
        return None

    def too_long(self, sent: int) -> Response:
        k = self.knobs
        text = f"This model's maximum context length is {k.context} tokens. However, your prompt contains {sent}"
        shapes: dict[str, Any] = {
            "vllm": {"error": {"message": text, "type": "BadRequestError", "param": "input_tokens", "code": 400}},
            "openai": {"error": {"message": text, "code": "context_length_exceeded", "param": "messages"}},
            "mute": {"error": {"message": "no"}},
            "llama.cpp": {"error": {"message": "the request exceeds", "type": "exceed_context_size_error"}},
        }
        if k.refuse_style == "text":
            return PlainTextResponse("prompt too long", k.refuse_status)
        return JSONResponse(shapes[k.refuse_style], k.refuse_status)

    async def generate(self, request: Request) -> Response:
        body = await request.json()
        self.seen.bodies.append(body)
        if not self.allowed(request):
            return JSONResponse({"error": "Unauthorized"}, 401)
        refusal = self.refusal(body)
        if refusal is not None:
            return refusal
        self.seen.generations += 1
        if "response_format" in body and self.knobs.structured == "refused":
            return JSONResponse({"error": {"message": "Unsupported parameter: response_format"}}, 400)
        if self.knobs.dies_after and self.seen.generations > self.knobs.dies_after:
            await self.die(request)
        if "tools" in body:
            return self.call(body)
        words = self.answer(body)
        usage = self.usage(body, len(words))
        if body.get("stream") and self.knobs.streams:
            return StreamingResponse(self.stream(body, usage), media_type="text/event-stream")
        part = {"message": {"role": "assistant", "content": "".join(words)}}
        choice = {"index": 0, **(part if "messages" in body else {"text": "".join(words)})}
        choice["finish_reason"] = self.knobs.finish_reason
        return JSONResponse({"id": "x", "choices": [choice], **({"usage": usage} if usage else {})})

    def usage(self, body: dict[str, Any], words: int) -> dict[str, int] | None:
        k = self.knobs
        prompt = min(self.count(body), k.context - 20) if k.cuts_prompts else self.count(body)
        if not k.usage or (k.usage_lie == "stream" and body.get("stream")):
            return None
        told = round(words * k.usage_factor)
        prompt = {"prompt": prompt // 2, "constant": 20}.get(k.usage_lie, prompt)
        return {"prompt_tokens": prompt, "completion_tokens": {"answer": 1, "more": 99}.get(k.usage_lie, told)}

    def answer(self, body: dict[str, Any]) -> tuple[str, ...]:
        """The words of the answer: as many as allowed where the end of the text is to be ignored."""
        k = self.knobs
        if "response_format" in body:
            valid = '{"colour": "red", "masts": 2, "afloat": true, "flags": ["a"]}'
            return {"valid": (valid,), "cut": (valid[:30],)}.get(k.structured, k.answer)
        secret = re.search(r"secret number is (\d+)", str(body.get("messages") or body.get("prompt")))
        if secret and self.seen.recalled < k.recalls:
            self.seen.recalled += 1
            return (f"It is {secret[1]}.",)
        if body.get("ignore_eos") and k.answer:
            most = body.get("max_tokens") or body["max_completion_tokens"]
            return tuple(k.answer[at % len(k.answer)] for at in range(most))
        return k.answer

    def call(self, body: dict[str, Any]) -> Response:
        k, choice = self.knobs, body["tool_choice"]
        if k.tools == "refused":
            return JSONResponse({"error": {"message": "Unsupported parameter: tools"}}, 400)
        if choice == "auto" and k.tools == "named":
            text = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
            return JSONResponse({"error": {"message": text, "type": "BadRequestError", "code": 400}}, 400)
        arguments = "north!" if k.tools == "garbage" else '{"direction": "north", "engine": true}'
        call = {"id": "1", "type": "function", "function": {"name": "set_heading", "arguments": arguments}}
        if choice == "auto" and k.tools in ("words", "left"):
            text = "I set it." if k.tools == "words" else '<tool_call>{"name": "set_heading"}</tool_call>'
            message: dict[str, Any] = {"role": "assistant", "content": text}
        else:
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        if not body.get("stream"):
            return JSONResponse({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
        cut = len(arguments) // 2
        pieces = ({"name": "set_heading", "arguments": arguments[:cut]}, {"arguments": arguments[cut:]})
        deltas = [{"tool_calls": [{"index": 0, "function": piece}]} for piece in pieces]
        lines = [f"data: {json.dumps({'choices': [{'index': 0, 'delta': d}]})}\n\n" for d in deltas]
        return PlainTextResponse("".join([*lines, "data: [DONE]\n\n"]), media_type="text/event-stream")

    async def embed(self, request: Request) -> Response:
        body, how = await request.json(), self.knobs.embeddings
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        if how != "cuts" and any(len(text.split()) > self.knobs.context for text in texts):
            return self.too_long(max(len(text.split()) for text in texts))
        vectors = [[float((zlib.crc32(text.encode()) >> at) % 7 - 3) or 0.5 for at in range(12)] for text in texts]
        if how == "shuffled" and len(vectors) > 1:
            vectors.reverse()
        vectors = {"zeros": [[0.0] * 12] * len(texts), "same": [[1.0] * 12] * len(texts), "empty": []}.get(how, vectors)
        return JSONResponse({"data": [{"index": at, "embedding": v} for at, v in enumerate(vectors)], "usage": {}})

    async def prefill(self, body: dict[str, Any]) -> None:
        """A long prompt holds everybody up."""
        if self.knobs.prefill_s and self.count(body) > 200:
            self.busy_until = max(self.busy_until, asyncio.get_running_loop().time()) + self.knobs.prefill_s
        await self.hold()

    async def hold(self) -> None:
        left = self.busy_until - asyncio.get_running_loop().time()
        if left > 0:
            await asyncio.sleep(left)

    async def die(self, request: Request) -> None:
        assert self.server is not None
        for listener in self.server.servers:
            listener.close()
        self.server.force_exit = self.server.should_exit = True
        for connection in list(self.server.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(30)

    async def stream(self, body: dict[str, Any], usage: dict[str, int] | None) -> AsyncIterator[bytes]:
        self.seen.streams += 1
        self.seen.streaming.set()
        self.seen.most_streams = max(self.seen.most_streams, self.seen.streams)
        try:
            async for value in self.events(body, usage):
                if value is None:
                    yield b": still here\n\n"
                    continue
                text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                end = "\r\n\r\n" if self.knobs.crlf else "\n\n"
                for piece in (f": ping{end}", f"data: {text}{end}"):
                    raw = piece.encode()
                    yield raw[: len(raw) // 2]
                    yield raw[len(raw) // 2 :]
        except (asyncio.CancelledError, GeneratorExit):
            self.seen.disconnects += 1
            self.seen.kept += self.knobs.keeps_running
            self.seen.left.set()
            raise
        finally:
            self.seen.streams -= 1

    async def events(self, body: dict[str, Any], usage: dict[str, int] | None) -> AsyncIterator[Any]:
        k = self.knobs
        await self.prefill(body)
        if k.buffers_streams_s:
            await asyncio.sleep(k.buffers_streams_s)
        empty = k.empty_after and self.seen.generations > k.empty_after
        for at, word in enumerate(() if empty else self.answer(body)):
            part: dict[str, Any] = {"delta": {"content": word}} if "messages" in body else {"text": word}
            yield {"choices": [{"index": 0, **part, "finish_reason": None}]}
            await asyncio.sleep(0.0 if k.buffers_streams_s else 0.01)
            await self.hold()
            if k.fail_streams_above and self.seen.most_streams > k.fail_streams_above:
                yield {
                    "error": {"message": "EngineCore encountered an issue", "type": "InternalServerError", "code": 500}
                }
                return
            while at == 1 and k.hang_streams:
                await asyncio.sleep(0.05 if k.pings_while_hanging else 3600)
                yield None
            if at == 1 and k.cut_streams:
                return
        yield {"choices": [{"index": 0, "delta": {}, "text": "", "finish_reason": k.finish_reason}]}
        if usage and body.get("stream_options", {}).get("include_usage"):
            yield {"choices": [], "usage": usage}
        yield "[DONE]"


@contextmanager
def serving(knobs: Knobs | None = None) -> Iterator[FakeServer]:
    """A server that listens on a free port of the loopback until the block ends."""
    fake = FakeServer(knobs or Knobs())
    listener = socket.create_server(("127.0.0.1", 0))
    fake.base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    config = uvicorn.Config(fake.app, log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
    fake.server = uvicorn.Server(config)
    ready = threading.Event()

    async def main() -> None:
        assert fake.server is not None
        serve = asyncio.create_task(fake.server.serve(sockets=[listener]))
        ready.set()
        await serve

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield fake
    finally:
        fake.server.should_exit = fake.server.force_exit = True
        thread.join(10)
        listener.close()
        assert not thread.is_alive()
