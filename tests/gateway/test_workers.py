"""Workers on one port: shared out, started again, signalled together, none left behind."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil

from tests.gateway.fake_back_end import back_end
from tests.gateway.process import KEY, Gateway, end_group, gateway, until

CONFIG = "local: false\nback_ends:\n  b: {url: http://127.0.0.1:9}\nmodels:\n  m: {targets: [{back_end: b}]}\n"


def workers(running: Gateway) -> list[psutil.Process]:
    return psutil.Process(running.child.pid).children()


def holders(port: int, inside: list[psutil.Process]) -> Counter[int]:
    """Accepted connections of each process."""
    return Counter(
        process.pid
        for process in inside
        for found in process.net_connections("tcp")
        if found.status == psutil.CONN_ESTABLISHED and found.laddr.port == port
    )


def replaced(running: Gateway, victim: int) -> None:
    """Wait until the worker `victim`, which was killed, has a successor, and the gateway answers as before."""
    running.said(rf"process {victim}\) ended with -9; it is started again")
    until(lambda: len({w.pid for w in workers(running)} - {victim}) == 2, "a new worker")
    for _ in range(20):
        assert running.ask("GET", "/v1/models")[0] == 200


def test_connections_are_shared_out(tmp_path: Path) -> None:
    with gateway(tmp_path, CONFIG, "--workers", "2") as running:
        opened = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(64)]
        inside = workers(running)
        assert len(inside) == 2
        until(lambda: sum(holders(running.port, inside).values()) == 64, "64 connections")
        shares = holders(running.port, inside)
        for one in opened:
            one.close()
        assert min(shares.values()) >= 10, shares


def test_a_killed_worker_is_started_again(tmp_path: Path) -> None:
    with gateway(tmp_path, CONFIG, "--workers", "2") as running:
        before = {worker.pid for worker in workers(running)}
        victim = min(before)
        os.kill(victim, signal.SIGKILL)
        replaced(running, victim)


def test_a_worker_that_hangs_is_killed_and_started_again(tmp_path: Path) -> None:
    """A stopped process holds its connections and says nothing, as one whose loop is blocked does."""
    with gateway(tmp_path, CONFIG, "--workers", "2") as running:
        victim = min(worker.pid for worker in workers(running))
        os.kill(victim, signal.SIGSTOP)
        running.said(rf"process {victim}\) hangs: it has said nothing for 10(.0)? s; it is killed")
        replaced(running, victim)
        assert running.log.read_text().count("hangs") == 1


HANGS_ONCE = """
import os, signal, socket, sys, time
from trimtab.gateway import workers

workers.LOOK_S, workers.START_LOOKS = 0.1, 10
lives = sys.argv[1]


def serve(place):
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    with open(lives, "a") as file:
        file.write("x")
    if os.path.getsize(lives) == 1:
        time.sleep(60)
    place.ready()
    while True:
        place.alive()
        time.sleep(0.05)


with socket.create_server(("127.0.0.1", 0)) as listening:
    workers.supervise([listening], serve, drain_s=5, say=lambda line: print(line, flush=True),
                      all_ready=lambda: print("serves", flush=True))
"""


def test_a_worker_that_hangs_before_it_serves_is_killed_too(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HANGS_ONCE, str(tmp_path / "lives")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as child:
        try:
            assert child.stdout is not None
            told = [child.stdout.readline() for _ in range(3)]
            child.terminate()
            assert child.wait(20) == 0
        finally:
            end_group(child)
    assert "hangs: it has said nothing for 1.0 s; it is killed" in told[0]
    assert "ended with -9; it is started again" in told[1]
    assert told[2] == "serves\n"


def test_signals_reach_every_worker(tmp_path: Path) -> None:
    with gateway(tmp_path, CONFIG, "--workers", "2") as running:
        (tmp_path / "gateway.yaml").write_text(CONFIG.replace("  m:", "  n:"))
        os.kill(running.child.pid, signal.SIGHUP)
        running.said(r"(?s)reloaded: 1 models.*reloaded: 1 models")
        assert all(b'"id":"n"' in running.ask("GET", "/v1/models")[2] for _ in range(10))
    assert running.child.returncode == 0


def test_a_reload_that_takes_the_back_end_away_drops_no_stream(tmp_path: Path) -> None:
    asked = json.dumps({"model": "m", "messages": [], "stream": True})
    with back_end() as leaves, back_end() as stays:
        former, latter = (CONFIG.replace("http://127.0.0.1:9", one.url) for one in (leaves, stays))
        with gateway(tmp_path, former, "--workers", "2") as running, ExitStack() as closing:
            streams = []
            for _ in range(6):  # shared out over both workers
                client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
                closing.callback(client.close)
                client.request("POST", "/v1/chat/completions", asked, {"Authorization": f"Bearer {KEY}"})
                streams.append(client.getresponse())
                assert b"first" in streams[-1].readline()
            (tmp_path / "gateway.yaml").write_text(latter)
            os.kill(running.child.pid, signal.SIGHUP)
            running.said(r"(?s)reloaded: .*reloaded: ")
            assert running.ask("POST", "/v1/chat/completions", {"model": "m", "messages": []})[0] == 200
            assert len(stays.seen) == 1
            leaves.go.set()
            assert all(b"[DONE]" in stream.read() for stream in streams)


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    with gateway(tmp_path, CONFIG, "--workers", "2") as running:
        inside = workers(running)
        running.child.kill()
        running.child.wait(10)
        assert psutil.wait_procs(inside, 10)[1] == []


def test_workers_that_cannot_live_end_the_gateway(tmp_path: Path) -> None:
    with gateway(tmp_path, CONFIG, "--workers", "2") as running:

        def kill_all() -> bool:
            if running.child.poll() is not None:
                return True
            with suppress(psutil.NoSuchProcess):
                for worker in workers(running):
                    worker.kill()
            return False

        until(kill_all, "the parent's end")
    assert running.child.returncode == 2
    running.said("the gateway's workers end as soon as they are started")


BLOCKS_ITS_LOOP = """
import asyncio, signal, time
from trimtab.gateway import running, workers

workers.LOOK_S = 0.2  # a worker that hangs is noticed after 2 s
served = running.Serving.run


async def run(self, *words):
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, time.sleep, 60)
    await served(self, *words)


running.Serving.run = run
from trimtab.__main__ import main

main()
"""


def test_a_worker_whose_loop_does_not_come_on_is_killed_and_started_again(tmp_path: Path) -> None:
    """The process lives, its other threads run: only its loop is kept by what does not return."""
    with gateway(tmp_path, CONFIG, "--workers", "2", program=("-c", BLOCKS_ITS_LOOP)) as running:
        victim = min(worker.pid for worker in workers(running))
        os.kill(victim, signal.SIGUSR1)
        running.said(rf"process {victim}\) hangs: it has said nothing for 2.0 s; it is killed")
        replaced(running, victim)


def test_a_parent_that_was_stopped_kills_nobody_when_it_wakes(tmp_path: Path) -> None:
    """Longer than a worker may be silent: their words lie in the pipe, or did not fit into it."""
    with gateway(tmp_path, CONFIG, "--workers", "2", program=("-c", BLOCKS_ITS_LOOP)) as running:
        before = {worker.pid for worker in workers(running)}
        os.kill(running.child.pid, signal.SIGSTOP)
        assert not running.ended_within(3)
        assert running.ask("GET", "/v1/models")[0] == 200
        os.kill(running.child.pid, signal.SIGCONT)
        assert not running.ended_within(3)
        assert {worker.pid for worker in workers(running)} == before
        assert "hangs" not in running.log.read_text()


def test_a_gateway_that_was_stopped_as_a_whole_goes_on(tmp_path: Path) -> None:
    """A machine that slept."""
    with gateway(tmp_path, CONFIG, "--workers", "2", program=("-c", BLOCKS_ITS_LOOP)) as running:
        before = workers(running)
        os.killpg(running.child.pid, signal.SIGSTOP)
        assert not running.ended_within(3)
        os.killpg(running.child.pid, signal.SIGCONT)
        assert not running.ended_within(3)
        assert workers(running) == before
        assert running.ask("GET", "/v1/models")[0] == 200
        assert "hangs" not in running.log.read_text()
