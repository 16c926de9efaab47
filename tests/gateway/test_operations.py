"""What the gateway tells about itself: metrics, readiness, the access log, request ids."""

import json
import os
import re
import select
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.gateway.fake_back_end import BackEnd, back_end
from tests.gateway.process import KEY, Gateway, gateway, until
from trimtab.gateway.forwarded import Origins, Proxies

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def config(url: str, more: str = "") -> str:
    return f"local: false\nback_ends:\n  b: {{url: {url}}}\nmodels:\n  m: {{targets: [{{back_end: b}}]}}\n{more}"


class Shared(NamedTuple):
    """One gateway for what needs none of its own: its log holds a line a request, its bounds are small."""

    running: Gateway
    behind: BackEnd
    log: Path


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    home = tmp_path_factory.mktemp("shared")
    log = home / "access.jsonl"
    bounds = f"access_log: {log}\nrequest_timeout: 1\nmax_head: 2048\nmax_body: 1000\n"
    more = "  counted: {targets: [{back_end: b}]}\n"
    with back_end() as behind, gateway(home, config(behind.url, more + bounds)) as running:
        yield Shared(running, behind, log)


def lines_of(log: Path, wanted: Callable[[Any], bool]) -> list[Any]:
    """Those that are wanted, once there is one."""
    found: list[Any] = []

    def there() -> bool:
        found[:] = [line for text in log.read_text().splitlines() if wanted(line := json.loads(text))]
        return bool(found)

    until(there, "a line")
    return found


def sample(running: Gateway, name: str) -> float:
    page = running.ask("GET", "/metrics")[2].decode()
    return sum(float(value) for value in re.findall(rf"^trimtab_gateway_{name}(?:{{.*}})? (\S+)$", page, re.MULTILINE))


def test_metrics_count_requests_tokens_and_refusals(shared: Shared) -> None:
    running = shared.running
    before = sample(running, "refused_total")
    for _ in range(3):
        assert running.ask("POST", "/v1/chat/completions", {**CHAT, "model": "counted"})[0] == 200
    assert running.ask("POST", "/v1/chat/completions", CHAT, {"Authorization": "Bearer no"})[0] == 401
    status, headers, page = running.ask("GET", "/metrics")
    assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    lines = page.decode().splitlines()
    labels = 'model="counted",back_end="b",path="/chat/completions",status="200"'
    assert f"trimtab_gateway_requests_total{{{labels}}} 3" in lines
    assert 'trimtab_gateway_prompt_tokens_total{model="counted",back_end="b"} 21' in lines
    assert 'trimtab_gateway_request_seconds_bucket{model="counted",back_end="b",le="+Inf"} 3' in lines
    assert any(line.startswith('trimtab_gateway_refused_total{status="401",code="key_wrong"} ') for line in lines)
    assert sample(running, "refused_total") == before + 1
    assert 'trimtab_gateway_back_end_ready{back_end="b"} 1' in lines
    told = [line for line in lines if line.startswith("# TYPE")]
    assert len(told) == len({line.split()[2] for line in told})


def test_metrics_of_workers_are_one_sum_that_never_falls(tmp_path: Path) -> None:
    with back_end() as behind, gateway(tmp_path, config(behind.url), "--workers", "2") as running:
        last = 0.0
        for _ in range(20):
            running.ask("POST", "/v1/chat/completions", CHAT)
            now = sample(running, "requests_total")
            assert now >= last
            last = now
        until(lambda: sample(running, "requests_total") == 20, "20 requests")
        assert sample(running, "workers") == sample(running, "store_reachable") == 2


def test_metrics_can_be_turned_off(tmp_path: Path) -> None:
    with back_end() as behind, gateway(tmp_path, config(behind.url, "metrics: false")) as running:
        assert running.ask("GET", "/metrics")[0] == 404


def test_readiness_is_kept_while_requests_are_tried(tmp_path: Path) -> None:
    """Left alone after failures is not down: the request is passed on nevertheless, so a balancer may send it here."""
    with gateway(tmp_path, config("http://127.0.0.1:9")) as running:
        assert running.ask("GET", "/healthz")[0] == 200

        def left_alone() -> bool:
            assert running.ask("POST", "/v1/chat/completions", CHAT)[0] == 502
            status, _, body = running.ask("GET", "/readyz")
            assert status == 200
            return bool(json.loads(body)["models_down"] == ["m"])

        until(left_alone, "left alone")
        assert running.ask("POST", "/readyz", {})[0] == 405


def test_readiness_ends_when_every_back_end_is_held_for_down(tmp_path: Path) -> None:
    checked = config("http://127.0.0.1:9").replace(":9}", ":9, health: /health, health_every: 0.1}")
    other = "  c: {url: http://127.0.0.1:9}\n"
    with gateway(tmp_path, checked) as running:
        until(lambda: running.ask("GET", "/readyz")[0] == 503, "not ready")
        answer = json.loads(running.ask("GET", "/readyz")[2])
        assert answer == {"status": "not ready", "draining": False, "models_down": ["m"]}
        assert running.ask("POST", "/v1/chat/completions", CHAT)[0] == 503
        more = checked.replace("models:\n", f"{other}models:\n  n: {{targets: [{{back_end: c}}]}}\n")
        (tmp_path / "gateway.yaml").write_text(more)
        running.child.send_signal(signal.SIGHUP)
        running.said("reloaded: 2 models")
        answer = json.loads(running.ask("GET", "/readyz")[2])
        assert answer == {"status": "ready", "draining": False, "models_down": ["m"]}


def test_the_access_log_holds_a_line_a_request(shared: Shared) -> None:
    for id, key in (("mine-1", KEY), ("mine-2", "sk-planted")):
        shared.running.ask("POST", "/v1/chat/completions", CHAT, {"X-Request-Id": id, "Authorization": f"Bearer {key}"})
    [good], [bad] = (lines_of(shared.log, lambda line, id=id: line["id"] == id) for id in ("mine-1", "mine-2"))
    assert (good["status"], good["path"], bad["status"], bad["path"]) == (
        200, "/chat/completions", 401, "/v1/chat/completions",
    )  # fmt: skip
    assert (good["key"], good["prompt_tokens"], good["peer"]) == ("environment", 7, "127.0.0.1")
    assert "sk-planted" not in shared.log.read_text()


def test_a_pipe_that_nobody_reads_is_told_and_stops_nothing(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with gateway(tmp_path, config("http://127.0.0.1:9")) as running:
        (tmp_path / "gateway.yaml").write_text(config("http://127.0.0.1:9", f"access_log: {pipe}\n"))
        running.child.send_signal(signal.SIGHUP)
        running.said("not reloaded: the access log .* cannot be written: No such device")
        assert running.ask("GET", "/healthz")[0] == 200
        with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
            running.child.send_signal(signal.SIGHUP)
            running.said("reloaded: 1 models")
            assert running.ask("GET", "/v1/models", headers={"Authorization": "Bearer no"})[0] == 401
            assert select.select([reader], [], [], 20)[0]
            assert json.loads(reader.readline())["status"] == 401


@pytest.mark.parametrize(
    ("sent", "status", "code", "path"),
    [
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400, "malformed_request", "/healthz"),
        (b"POST /v1/messages?beta=true HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n", 413,
         "request_too_large", "/v1/messages"),
        (b"POST /v1/messages HTTP/1.1\r\nHost: x\r\n", 408, "request_timeout", "/v1/messages"),
        (b"\x16\x03\x01\x02\x00\x01", 400, "malformed_request", ""),
    ],
)  # fmt: skip
def test_what_a_connection_refuses_is_told_too(shared: Shared, sent: bytes, status: int, code: str, path: str) -> None:
    def counted() -> int:
        page = shared.running.ask("GET", "/metrics")[2].decode()
        found = re.search(rf'refused_total{{status="{status}",code="{code}"}} (\d+)', page)
        return int(found[1]) if found else 0

    before = counted()
    with socket.create_connection(("127.0.0.1", shared.running.port), timeout=20) as client:
        client.sendall(sent)
        assert client.recv(4096).startswith(b"HTTP/1.1 %d " % status)
    assert counted() == before + 1
    wanted = (status, code, path, "127.0.0.1")
    lines_of(shared.log, lambda line: (line["status"], line.get("code"), line["path"], line["peer"]) == wanted)


def test_request_ids_and_traces_pass_through(shared: Shared) -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    running, seen = shared.running, shared.behind.seen
    sent = {"X-Request-Id": "mine-3", "traceparent": trace}
    _, headers, _ = running.ask("POST", "/v1/chat/completions", CHAT, sent)
    assert headers["x-request-id"] == "mine-3"
    assert seen[-1][1]["x-request-id"] == "mine-3"
    assert seen[-1][1]["traceparent"] == trace
    _, headers, _ = running.ask("POST", "/v1/chat/completions", CHAT)
    assert headers["x-request-id"] == seen[-1][1]["x-request-id"] != ""


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.1", b"203.0.113.9, 10.0.0.2", "203.0.113.9"),
        ("10.0.0.1", b"198.51.100.1, 203.0.113.9", "203.0.113.9"),  # the left one is the client's own word
        ("203.0.113.9", b"198.51.100.1", "203.0.113.9"),  # not a proxy of ours
        ("10.0.0.1", b"", "10.0.0.1"),
        ("10.0.0.1", b"nonsense", "10.0.0.1"),
        ("10.0.0.1", b"10.0.0.2", "10.0.0.2"),
        ("", b"203.0.113.9", "203.0.113.9"),
        ("::1", b"203.0.113.9", "::1"),
    ],
)
def test_forwarded_addresses_are_believed_of_trusted_proxies_alone(peer: str, forwarded: bytes, client: str) -> None:
    assert Proxies(["10.0.0.0/8"]).client(peer, forwarded) == client


def test_origins_are_named_or_any() -> None:
    named = Origins(["https://chat.example.com"])
    assert b"Access-Control-Allow-Origin: https://chat.example.com\r\n" in named.lines(b"https://chat.example.com")
    assert named.lines(b"https://evil.example.com") == named.preflight(b"https://evil.example.com", b"") == b""
    assert b"Access-Control-Allow-Origin: *\r\n" in Origins(["*"]).lines(b"https://any.example.com")
    assert b"Access-Control-Allow-Headers: x-api-key\r\n" in named.preflight(b"https://chat.example.com", b"x-api-key")


def test_sizes_are_bounded_as_configured(shared: Shared) -> None:
    assert shared.running.ask("GET", "/healthz", None, {"X-Long": "x" * 3000})[0] == 431
    assert shared.running.ask("POST", "/v1/chat/completions", {**CHAT, "more": "x" * 2000})[0] == 413
