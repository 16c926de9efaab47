"""The kept connection against real sockets: servers that close, hang, cut off, and say what is no HTTP."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.fakes.metrics_server import serving
from trimtab.supervisor.connection import Answer, Connection
from trimtab.supervisor.ports import free_port

BOUND_S = 5.0


@contextmanager
def talking(talk: Callable[[socket.socket, int], None]) -> Iterator[str]:
    """A server whose `talk` gets each connection and its number; its URL."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for number in range(100):
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                with peer:
                    talk(peer, number)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def says(text: bytes) -> Callable[[socket.socket, int], None]:
    def talk(peer: socket.socket, number: int) -> None:
        peer.recv(1 << 16)
        peer.sendall(text)

    return talk


def get(url: str, bound_s: float = BOUND_S) -> Answer:
    connection = Connection(url, {}, bound_s)
    try:
        return connection.get("/health")
    finally:
        connection.close()


def test_one_connection_serves_many_requests() -> None:
    def talk(peer: socket.socket, number: int) -> None:
        while peer.recv(1 << 16):
            peer.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n%d" % number)

    with talking(talk) as url:
        connection = Connection(url, {}, BOUND_S)
        assert [connection.get("/").body for _ in range(3)] == [b"0"] * 3
        connection.close()
        assert connection.get("/").body == b"1"
        connection.close()


def test_a_connection_that_the_server_closed_is_opened_again() -> None:
    with talking(says(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")) as url:
        connection = Connection(url, {}, BOUND_S)
        assert [connection.get("/") for _ in range(3)] == [Answer(200, b"ok")] * 3
        assert connection.post("/", b"{}", BOUND_S) == Answer(200, b"ok")
        connection.close()


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x15\x03\x01\x00\x02\x02\x46", id="tls-alert"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", id="cut-off"),
        pytest.param(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nhalf", id="cut-off-in-a-chunk"),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 500 + b"\r\n", id="too-many-headers"),
        pytest.param(b"HTTP/1.1 abc OK\r\n\r\n", id="no-status"),
    ],
)
def test_what_is_no_whole_answer(said: bytes) -> None:
    with talking(says(said)) as url:
        assert get(url) == Answer()


def test_nobody_listens() -> None:
    assert get(f"http://127.0.0.1:{free_port('127.0.0.1', first=18900)}") == Answer()


def test_an_answer_that_does_not_come_is_late_and_spoils_no_later_one() -> None:
    go_on = threading.Event()

    def talk(peer: socket.socket, number: int) -> None:
        peer.recv(1 << 16)
        if number == 0:
            go_on.wait(30)
        peer.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n%d" % number)

    with talking(talk) as url:
        connection = Connection(url, {}, 0.1)
        assert connection.get("/") == Answer(late=True)
        go_on.set()
        assert connection.post("/", b"{}", BOUND_S) == Answer(200, b"1")
        connection.close()


def test_no_proxy_of_the_environment_stands_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with serving(b"running 1\n") as server:
        connection = Connection(f"{server.url}/v1", {}, BOUND_S)
        assert connection.get("/metrics") == Answer(200, b"running 1\n")
        connection.close()
