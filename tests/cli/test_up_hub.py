"""`trimtab up` and `plan` on ids of a hub on a real socket: each failure in its own words, nothing half-written."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import CONFIG
from tests.cli.test_up import clear, environment, left_over, record
from tests.fakes.hub_server import FakeHub, Repo, serve_hub
from tests.supervisor.fake import wait_for

ID = "acme/tiny-1b"
HEADER = json.dumps({"a": {"dtype": "F16", "shape": [100, 1000], "data_offsets": [0, 200_000]}}).encode()
WEIGHTS = struct.pack("<Q", len(HEADER)) + HEADER + bytes(200_000)
FILES = {"config.json": json.dumps(CONFIG).encode(), "tokenizer.json": b"{}", "model.safetensors": WEIGHTS}


@pytest.fixture
def server() -> Iterator[FakeHub]:
    with serve_hub() as found:
        found.repos[ID] = Repo(dict(FILES))
        found.repos["acme/gated-1b"] = Repo(dict(FILES), gated=True)
        found.repos["acme/bare-1b"] = Repo({"model.safetensors": WEIGHTS})
        yield found


def started(home: Path, server: FakeHub, *words: str, **more: str) -> subprocess.Popen[str]:
    hub = {"HF_ENDPOINT": server.endpoint, "HF_HOME": str(home / "hf"), "HF_HUB_OFFLINE": "0"}
    kept = {k: v for k, v in environment(home).items() if k not in ("HF_TOKEN", "HF_HUB_CACHE")}
    return subprocess.Popen(
        [sys.executable, "-m", "trimtab", *words], env={**kept, **hub, **more}, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def run(home: Path, server: FakeHub, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    with started(home, server, *words, **more) as child:
        out, err = child.communicate(timeout=60)
    return subprocess.CompletedProcess(words, child.returncode, out, err)


@pytest.mark.parametrize(
    ("model", "environ", "said"),
    [
        ("acme/tinny-1b", {}, "Did you mean acme/tiny-1b?"),
        ("acme/gated-1b", {}, "acme/gated-1b is gated, and you are not logged in"),
        ("acme/gated-1b", {"HF_TOKEN": "hf_known"}, "your token's account has not been let in"),
        (ID, {"HF_TOKEN": "hf_wrong"}, "does not accept your token (401)"),
        ("acme/bare-1b", {}, "acme/bare-1b holds no config.json"),
        (ID, {"HF_HUB_OFFLINE": "1"}, f"{ID} is not in the cache"),
        (ID, {"HF_ENDPOINT": "http://127.0.0.1:9"}, "cannot reach http://127.0.0.1:9"),
        (ID, {"HF_HOME": "/etc/passwd"}, "/etc/passwd"),
    ],
)
@pytest.mark.parametrize("verb", ["up", "plan"])
def test_refused(
    home: Path, python: Path, server: FakeHub, verb: str, model: str, environ: dict[str, str], said: str
) -> None:
    server.valid_tokens = {"hf_known"}
    engine = ("--engine-python", str(python)) if verb == "up" else ("--gpu", "cpu")
    done = run(home, server, verb, model, *engine, **environ)
    assert (done.returncode, done.stdout) == (2, "")
    clear(done, said)
    assert not (home / "state").exists()
    assert not list(home.glob("hf/hub/*/snapshots/*"))


def test_a_cut_transfer_goes_on_and_serves(home: Path, python: Path, server: FakeHub) -> None:
    server.repos[ID].files["model.safetensors"] = whole = WEIGHTS + os.urandom(2_000_000)
    server.cuts = [600_000, 700_000]
    with started(home, server, "up", ID, "--engine-python", str(python), "--no-verify") as child:
        seen = wait_for(lambda: record(home, "ready"))
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=30)
    assert (child.returncode, seen.models) == (0, ("tiny-1b",))
    first, *later = [r.range for r in server.gets("/cdn/")]
    assert first is None
    assert len(later) == 2
    assert all(int((asked or "").strip("bytes=-")) >= 500_000 for asked in later)
    served = next(Path(word) for word in seen.argv if word.startswith(str(home)))
    assert (served / "model.safetensors").read_bytes() == whole


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ended_during_the_transfer(home: Path, python: Path, server: FakeHub, number: signal.Signals) -> None:
    server.repos[ID].files["model.safetensors"] = WEIGHTS + os.urandom(4_000_000)
    with started(home, server, "up", ID, "--engine-python", str(python)) as child:
        server.after_bytes = lambda name, at: os.kill(child.pid, number) if at == 1 << 20 else None
        out, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "Traceback" not in err
    assert out == ""
    assert left_over(home) == []
    assert not (home / "state").exists()
    assert not list(home.glob("hf/hub/*/snapshots/*/model.safetensors"))
