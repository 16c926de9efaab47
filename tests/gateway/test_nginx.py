"""Behind nginx with the documented configuration: TLS, clients' addresses, and streams that are passed on at once."""

import json
import shutil
import socket
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.gateway.certificates import certificate
from tests.gateway.fake_back_end import BackEnd, back_end
from tests.gateway.process import KEY, Gateway, gateway, until
from tests.ports import free_port

TOP = Path(__file__).parents[2]
SITE = (TOP / "docs" / "examples" / "nginx.conf").read_text()
STREAM = {"model": "m", "stream": True, "messages": []}


def config(behind: BackEnd, more: str = "") -> str:
    return f"local: false\nback_ends:\n  b: {{url: {behind.url}}}\nmodels:\n  m: {{targets: [{{back_end: b}}]}}\n{more}"


@contextmanager
def nginx(home: Path, gateway_port: int) -> Iterator[tuple[int, ssl.SSLContext]]:
    """nginx over the site of the documentation, with ports and files of this test."""
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    cert, key = certificate(home)
    port = free_port()
    site = SITE.replace("127.0.0.1:8080", f"127.0.0.1:{gateway_port}").replace("listen 443", f"listen 127.0.0.1:{port}")
    site = site.replace("/etc/nginx/llm.example.com.pem", str(cert)).replace("/etc/nginx/llm.example.com.key", str(key))
    places = "".join(
        f"{name}_temp_path {home}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    whole = f"pid {home}/nginx.pid;\nevents {{}}\nhttp {{\naccess_log off;\n{places}{site}\n}}\n"
    (home / "nginx.conf").write_text(whole)
    words = [program, "-e", str(home / "error.log"), "-p", str(home), "-c", str(home / "nginx.conf")]
    child = subprocess.Popen([*words, "-g", "daemon off;"], stderr=subprocess.DEVNULL)
    try:
        until(lambda: listens(port), "nginx listens")
        yield port, ssl.create_default_context(cafile=str(cert))
    finally:
        child.terminate()
        child.wait(10)


def listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def request(port: int, path: str, body: object = None) -> urllib.request.Request:
    data = json.dumps(body).encode() if body is not None else None
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    return urllib.request.Request(f"https://localhost:{port}{path}", data, headers)


def test_a_stream_is_not_held_back(tmp_path: Path) -> None:
    with (
        back_end() as behind,
        gateway(tmp_path, config(behind)) as running,
        nginx(tmp_path, running.port) as (port, tls),
        urllib.request.urlopen(request(port, "/v1/chat/completions", STREAM), context=tls, timeout=20) as answer,
    ):
        assert b"first" in answer.readline()  # the back end has not gone on yet
        behind.go.set()
        assert b"[DONE]" in answer.read()


def test_the_client_s_address_and_closed_paths(tmp_path: Path) -> None:
    log = tmp_path / "access.jsonl"
    more = f"trusted_proxies: [127.0.0.1]\naccess_log: {log}\n"
    with back_end() as behind:
        behind.go.set()
        with gateway(tmp_path, config(behind, more)) as running, nginx(tmp_path, running.port) as (port, tls):
            asked = request(port, "/v1/chat/completions", {"model": "m", "messages": []})
            asked.add_header("X-Forwarded-For", "203.0.113.9")
            with urllib.request.urlopen(asked, context=tls, timeout=20) as answer:
                assert answer.status == 200
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request(port, "/metrics"), context=tls, timeout=20)
            assert refused.value.code == 403
            refused.value.close()
    # nginx added 127.0.0.1, which is a proxy; the word before it is a client's own and is believed of a trusted peer
    assert json.loads(log.read_text().splitlines()[0])["peer"] == "203.0.113.9"


def test_tls_without_a_proxy(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    more = f"tls_certificate: {cert}\ntls_key: {key}\n"
    with back_end() as behind, gateway(tmp_path, config(behind, more)) as running:
        tls = ssl.create_default_context(cafile=str(cert))
        with urllib.request.urlopen(request(running.port, "/v1/models"), context=tls, timeout=20) as answer:
            assert b'"id":"m"' in answer.read()


def cors(running: Gateway, method: str, origin: str, **more: str) -> dict[str, str]:
    return running.ask(method, "/v1/models", None, {"Origin": origin, **more})[1]


def test_pages_of_named_origins_may_ask(tmp_path: Path) -> None:
    with back_end() as behind, gateway(tmp_path, config(behind, "cors: ['https://chat.example.com']")) as running:
        good, asked = "https://chat.example.com", {"Access-Control-Request-Method": "POST"}
        assert cors(running, "GET", good)["access-control-allow-origin"] == good
        assert "access-control-allow-origin" not in cors(running, "GET", "https://evil.example.com")
        assert "POST" in cors(running, "OPTIONS", good, **asked)["access-control-allow-methods"]
        assert "access-control-allow-methods" not in cors(running, "OPTIONS", "https://evil.example.com", **asked)
        behind.go.set()
        _, headers, _ = running.ask("POST", "/v1/chat/completions", STREAM, {"Origin": good})
        assert headers["access-control-allow-origin"] == good
