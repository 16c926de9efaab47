"""The gateway before a real vLLM: its models are found, three protocols pass, usage and readiness are right."""

import json
from pathlib import Path

import pytest

from tests.conftest import DemoServer
from tests.gateway.process import gateway, until

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
