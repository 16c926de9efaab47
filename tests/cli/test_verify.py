"""`trimtab verify` as a user runs it: exit codes, streams, JSON, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.fakes.openai_server import Knobs, serving


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "trimtab", "verify", *words]


def environment(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TRIMTAB_")}
    return kept | {"TRIMTAB_LANG": "en", "XDG_CONFIG_HOME": "/nonexistent"} | more


def verify(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words), capture_output=True, text=True, check=False, env=environment(**more))


def test_all_passed_is_0_and_a_table() -> None:
    with serving() as fake:
        done = verify(fake.base_url)
    assert done.returncode == 0, done.stderr
    for name in ("one_request", "concurrency", "long_context", "no_oom"):
        assert f"{name}: passed" in done.stderr
        assert name in done.stdout
    assert "holds 3 requests of 512 tokens" in done.stdout
    assert "passed in" in done.stdout


def test_json_has_the_schema_and_nothing_beside_it() -> None:
    with serving() as fake:
        done = verify(fake.base_url, "--json", TRIMTAB_LANG="zh")
    report = json.loads(done.stdout)
    assert done.stderr == ""
    assert report["schema"] == "trimtab.verify/2"
    assert report["passed"] is True
    assert [c["name"] for c in report["criteria"]] == ["one_request", "concurrency", "long_context", "no_oom"]
    keys = {"name", "verdict", "passed", "seconds", "measured", "evidence", "next", "figures", "series"}
    assert all(set(c) == keys for c in report["criteria"])
    assert report["capacity"]["requests"] == 3.0


def test_a_failure_is_1() -> None:
    with serving(Knobs(cuts_prompts=True)) as fake:
        done = verify(fake.base_url, "--allow-unjudged")
    assert done.returncode == 1
    assert "FAILED" in done.stdout


def test_unjudged_is_1_unless_allowed_and_never_shown_as_passed() -> None:
    with serving(Knobs(metrics=False)) as fake:
        refused, allowed = verify(fake.base_url), verify(fake.base_url, "--allow-unjudged", "--json")
    assert refused.returncode == 1
    assert "no_oom: not judged" in refused.stderr
    assert refused.stdout.splitlines()[-1].startswith("not judged in")
    assert allowed.returncode == 0
    assert json.loads(allowed.stdout)["passed"] is None


def test_a_log_is_read(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("torch.OutOfMemoryError: CUDA out of memory\n", encoding="utf-8")
    with serving() as fake:
        done = verify(fake.base_url, "--log", str(log))
        missing = verify(fake.base_url, "--log", str(tmp_path / "none"))
    assert done.returncode == 1
    assert "out of memory in log" in done.stdout
    assert missing.returncode == 2
    assert "none" in missing.stderr


def test_the_key_comes_from_the_option_or_the_environment_and_an_empty_one_is_none() -> None:
    with serving(Knobs(key="sk-1")) as fake:
        by_option = verify(fake.base_url, "--key", "sk-1", "--concurrency", "1")
        by_variable = verify(fake.base_url, "--concurrency", "1", TRIMTAB_API_KEY="sk-1")
        unset = verify(fake.base_url, "--key", "")
    assert (by_option.returncode, by_variable.returncode, unset.returncode) == (0, 0, 2)
    assert "none was given" in unset.stderr


@pytest.mark.parametrize(
    "words", [["nonsense"], ["http://127.0.0.1:9"], [], ["http://127.0.0.1:9", "--concurrency", "0"]]
)
def test_what_cannot_work_is_2_with_a_next_step(words: list[str]) -> None:
    done = verify(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "-> " in done.stderr
    assert "Traceback" not in done.stderr


def test_ctrl_c_closes_the_connections_and_keeps_what_was_judged() -> None:
    with serving(Knobs(hang_streams=True)) as fake:
        child = subprocess.Popen(
            command(fake.base_url), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
        )
        assert fake.seen.streaming.wait(30)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=10)
        assert fake.seen.left.wait(10)
    assert child.returncode == 130
    shown = {line.split()[0]: line for line in out.splitlines() if line}
    assert "passed" in shown["one_request"]
    assert all("not judged" in shown[name] for name in ("concurrency", "long_context", "no_oom"))
    assert "interrupted: the verdicts are of what was done until then" in out
    assert "Traceback" not in err


@contextmanager
def answering(*pieces: bytes, pause_s: float = 0.0) -> Iterator[str]:
    """A server that sends these bytes to whoever connects, whatever he asks; its URL."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            for piece in pieces:
                with suppress(OSError):
                    self.request.sendall(piece)
                threading.Event().wait(pause_s)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def page(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    lines = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), b"Connection: close", *headers]
    return b"\r\n".join([*lines, b"", body])


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (page(b"no gzip", b"Content-Encoding: gzip"), "cannot be decoded"),
        (page(b"[" * 100_000), "is no model list"),
        (page(b'{"data": [{"id": "\xff"}]}'), "is no model list"),
        (page(b'{"data": [7, null, {"id": 5}]}'), "lists no model"),
        (page(b"<html>502 Bad Gateway</html>", status=b"502 Bad Gateway"), "a web page, not with JSON (502)"),
        (page(b"{}", status=b"401 Unauthorized"), "asks for a key (401) and none was given"),
        (b"\x00\xff garbage\r\n\r\n", "closed the connection"),
        (b"", "closed the connection"),
    ],
)
def test_what_is_no_server_is_one_clear_error(answer: bytes, said: str) -> None:
    with answering(answer) as url:
        done = verify(url)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "\n  -> " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_list_that_never_ends_is_given_up() -> None:
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", *([b" "] * 300), pause_s=0.1) as url:
        done = verify(url, "--timeout", "1")
    assert done.returncode == 2
    assert "no whole answer within 1 s" in done.stderr


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1?x=1", "http://127.0.0.1:9/#y", "http://a b/"])
def test_a_url_with_more_than_a_place(url: str) -> None:
    done = verify(url)
    assert done.returncode == 2
    assert f"{url} is not a URL of a server" in done.stderr
