"""Downloads that end before their time, in a process of their own: Ctrl-C, a full disk, a network that stalls."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.facts.probe.test_hub import ID, Watcher
from tests.fakes.hub_server import FakeHub, Repo, serve_hub
from trimtab.facts.probe.hub import fetch
from trimtab.facts.probe.hub_settings import Hub

SIZE = 6_000_000
PROGRAM = """
import sys
from trimtab.errors import TrimtabError
from trimtab.facts.probe.hub import fetch
from trimtab.facts.probe.hub_settings import hub_from_environment
class Silent:
    def moved(self, progress): print(progress.done_bytes, progress.total_bytes, flush=True)
    def noted(self, note): print(note, file=sys.stderr)
try:
    print(fetch(sys.argv[1], hub_from_environment(), Silent()))
except KeyboardInterrupt:
    sys.exit(130)
except TrimtabError as error:
    print(f"{error.message} -> {error.hint}", file=sys.stderr)
    sys.exit(2)
"""


@pytest.fixture
def server() -> Iterator[FakeHub]:
    with serve_hub() as found:
        found.repos[ID] = Repo({"config.json": b"{}", "model.safetensors": os.urandom(SIZE)})
        yield found


def start(server: FakeHub, home: Path) -> subprocess.Popen[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING"))}
    env = {**kept, "HF_HOME": str(home), "HF_ENDPOINT": server.endpoint}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM, ID],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def hold_after(server: FakeHub, n_bytes: int) -> tuple[threading.Event, threading.Event]:
    """Let the server stop in the midst of the weights: (it has stopped, let it go on)."""
    reached, go_on = threading.Event(), threading.Event()

    def hold(_: str, sent: int) -> None:
        if sent >= n_bytes and not go_on.is_set():
            reached.set()
            go_on.wait(60)

    server.after_bytes = hold
    return reached, go_on


def test_ctrl_c_keeps_what_came_and_the_next_run_goes_on(server: FakeHub, tmp_path: Path) -> None:
    reached, go_on = hold_after(server, 3_000_000)
    child = start(server, tmp_path)
    assert reached.wait(30)
    blob = tmp_path / "hub/models--acme--tiny-1b/blobs" / server.repos[ID].etag("model.safetensors")
    part = blob.with_name(blob.name + ".trimtab.part")
    assert child.stdout is not None
    for line in child.stdout:  # until the bytes that were sent are counted
        if int(line.split()[0]) > 2_000_000:
            break
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=20)
    assert (child.returncode, errors) == (130, "")
    assert not blob.exists()
    assert not (tmp_path / "hub/models--acme--tiny-1b/refs/main").exists()
    kept = part.stat().st_size
    assert 0 < kept < SIZE

    go_on.set()
    server.requests.clear()
    child = start(server, tmp_path)
    out, errors = child.communicate(timeout=30)
    assert (child.returncode, errors) == (0, "")
    assert [r.range for r in server.gets("/cdn/")] == [f"bytes={kept}-"]
    found = Path(out.splitlines()[-1])
    assert (found / "model.safetensors").read_bytes() == server.repos[ID].files["model.safetensors"]


def test_killed_outright_leaves_nothing_that_breaks_the_next_run(server: FakeHub, tmp_path: Path) -> None:
    reached, go_on = hold_after(server, 3_000_000)
    child = start(server, tmp_path)
    assert reached.wait(30)
    child.kill()
    child.communicate(timeout=20)
    go_on.set()
    found = fetch(ID, Hub(cache=tmp_path / "hub", endpoint=server.endpoint, token=""), Watcher())
    assert (found / "model.safetensors").read_bytes() == server.repos[ID].files["model.safetensors"]


def test_two_at_once_move_the_bytes_once(server: FakeHub, tmp_path: Path) -> None:
    reached, go_on = hold_after(server, 1_000_000)
    first = start(server, tmp_path)
    assert reached.wait(30)
    second = start(server, tmp_path)
    assert second.stdout is not None
    assert second.stdout.readline()  # it has looked the model up and is at it
    go_on.set()
    for child in (first, second):
        out, errors = child.communicate(timeout=30)
        assert (child.returncode, errors) == (0, ""), errors
        data = (Path(out.splitlines()[-1]) / "model.safetensors").read_bytes()
        assert data == server.repos[ID].files["model.safetensors"]
    assert len(server.gets("/cdn/")) == 1


def test_a_disk_that_fills_meanwhile(server: FakeHub, tmp_path: Path) -> None:
    """A limit on the size of a file stands in for the disk: the write fails in the same place, with EFBIG."""
    script = f"ulimit -f {SIZE // 2 // 1024}; trap '' XFSZ; exec \"$@\""
    places = {"HF_HOME": str(tmp_path), "HF_TOKEN_PATH": str(tmp_path / "none")}
    env = {**os.environ, "HF_ENDPOINT": server.endpoint, **places}
    done = subprocess.run(
        ["bash", "-c", script, "bash", sys.executable, "-c", PROGRAM, ID],
        env=env, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert "cannot write to" in done.stderr
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_client_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, trimtab.facts.probe.hub, trimtab.cli.subject; print('huggingface_hub' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
