"""Responses that one of two replicas keeps: fetched, cancelled, deleted and streamed again through the gateway."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import openai
import pytest

from tests.fakes.listening import listening
from tests.gateway.process import ADMIN, KEY, Gateway, gateway, until

STREAM = (
    b'event: response.created\ndata: {"type":"response.created","response":{"model":"there"},"sequence_number":0}\n\n'
)
UNKNOWN = b'{"error":{"message":"not here","code":404}}'


def response(id: str, model: str = "there", status: str = "completed") -> dict[str, object]:
    return {
        "id": id, "object": "response", "created_at": 1, "status": status, "model": model, "output": [], "tools": [],
        "parallel_tool_calls": True, "tool_choice": "auto",
    }  # fmt: skip


class Keeper(BaseHTTPRequestHandler):
    """As vLLM with its store: GET, also as a stream, and cancel; and DELETE as OpenAI has it."""

    protocol_version = "HTTP/1.1"
    server: Replica

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        kept = self.server.kept.get(path.split("/")[3] if path.count("/") > 2 else "")
        if path == "/health":
            self._answer(200, b"")
        elif path == "/v1/models":
            self._answer(200, b'{"data":[{"id":"there"}]}')
        elif kept is None:
            self._answer(404, UNKNOWN)
        elif "stream=true" in query:
            self._answer(200, STREAM, "text/event-stream")
        elif path.endswith("/input_items"):
            self._answer(200, b'{"object":"list","data":[]}')
        else:
            self._answer(200, json.dumps(kept).encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/v1/responses":  # 404 for what it does not know, as vLLM does before it generates
            known = json.loads(body)["previous_response_id"] in self.server.kept
            self._answer(*((200, json.dumps(response("resp_next")).encode()) if known else (404, UNKNOWN)))
            return
        id = self.path.split("/")[3]
        assert self.path == f"/v1/responses/{id}/cancel"
        self.server.kept[id]["status"] = "cancelled"
        self._answer(200, json.dumps(self.server.kept[id]).encode())

    def do_DELETE(self) -> None:
        del self.server.kept[self.path.split("/")[3]]
        self._answer(200, b'{"deleted":true}')

    def _answer(self, status: int, data: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


class Replica(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *ids: str) -> None:
        super().__init__(("127.0.0.1", 0), Keeper)
        self.kept = {id: response(id) for id in ids}


@contextmanager
def replica(*ids: str) -> Iterator[Replica]:
    server = Replica(*ids)
    with listening(server):
        yield server


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with replica("resp_a") as one, replica("resp_b", "resp_c", "resp_d") as two:
        two.kept["resp_other"] = response("resp_other", "of-nobody")
        config = {
            "local": False,
            "back_ends": {
                name: {"url": f"http://127.0.0.1:{server.server_address[1]}", "kind": "vllm"}
                for name, server in (("one", one), ("two", two))
            },
            "models": {"m": {"targets": [{"back_end": name, "model": "there"} for name in ("one", "two")]}},
        }
        with gateway(tmp_path_factory.mktemp("stored"), json.dumps(config)) as found:
            yield found


def test_whichever_replica_has_it_answers(running: Gateway) -> None:
    with openai.OpenAI(base_url=f"http://127.0.0.1:{running.port}/v1", api_key=KEY, max_retries=0) as client:
        for id in ("resp_a", "resp_b"):
            found = client.responses.retrieve(id)
            assert (found.id, found.model) == (id, "m")
        assert client.responses.cancel("resp_b").status == "cancelled"
        assert list(client.responses.input_items.list("resp_a")) == []
        events = list(client.responses.retrieve("resp_a", stream=True))
        assert [event.type for event in events] == ["response.created"]
        assert events[0].response.model == "m"  # type: ignore[union-attr]
        client.responses.delete("resp_c")
        with pytest.raises(openai.NotFoundError, match="VLLM_ENABLE_RESPONSES_API_STORE"):
            client.responses.retrieve("resp_c")


def test_a_turn_reaches_whichever_replica_has_the_one_before(running: Gateway) -> None:
    with openai.OpenAI(base_url=f"http://127.0.0.1:{running.port}/v1", api_key=KEY, max_retries=0) as client:
        for id in ("resp_a", "resp_d", "resp_a"):
            assert client.responses.create(model="m", input="on", previous_response_id=id).id == "resp_next"
        with pytest.raises(openai.NotFoundError, match="not here"):
            client.responses.create(model="m", input="on", previous_response_id="resp_none")
    names = ("one", "two")
    states = json.loads(running.ask("GET", "/admin/back-ends", headers={"Authorization": f"Bearer {ADMIN}"})[2])
    assert {s["name"]: s["failures"] for s in states["back_ends"]} == dict.fromkeys(names, 0)


def test_what_cannot_be_asked_is_told(running: Gateway) -> None:
    for method, path, status, code in (
        ("GET", "/v1/responses/resp_other", 404, "response_not_found"),  # of a model that is not served here
        ("GET", "/responses/resp_none", 404, "response_not_found"),
        ("GET", "/v1/responses/a%2Fb", 404, "not_found"),
        ("POST", "/v1/responses/resp_a", 405, "method_not_allowed"),
        ("GET", "/v1/responses/resp_a/cancel", 405, "method_not_allowed"),
    ):
        found, headers, body = running.ask(method, path)
        assert (found, json.loads(body)["error"]["code"]) == (status, code)
        assert ("allow" in headers) == (status == 405)
    assert running.ask("GET", "/v1/responses/resp_a", headers={"Authorization": "Bearer no"})[0] == 401


def test_a_key_sees_responses_of_its_own_models_alone(running: Gateway) -> None:
    for limits, status in (({"models": ["other"]}, 404), ({"endpoints": ["chat"]}, 403), ({"models": ["m"]}, 200)):
        admin = {"Authorization": f"Bearer {ADMIN}"}
        made = running.ask("POST", "/admin/keys", {"label": "k", "limits": limits}, admin)
        assert made[0] in (200, 201), made
        key = {"Authorization": f"Bearer {json.loads(made[2])['text']}"}
        until(lambda key=key: running.ask("GET", "/v1/models", headers=key)[0] == 200, "the key is known")  # type: ignore[misc]
        assert running.ask("GET", "/v1/responses/resp_a", headers=key)[0] == status


def test_a_replica_that_is_down_may_have_had_it(tmp_path: Path) -> None:
    config = (
        "local: false\nback_ends: {b: {url: 'http://127.0.0.1:9', kind: vllm}}\nmodels: {m: {targets: [{back_end: b}]}}"
    )
    with gateway(tmp_path, config) as alone:
        assert alone.ask("GET", "/v1/responses/resp_a")[0] == 502
