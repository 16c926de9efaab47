"""`trimtab up NAME --unit`: systemd takes it, and the words in it start the server of before again."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

from tests.cli.test_up import left_over, record, running, up
from tests.cli.test_up_kept import stop
from tests.supervisor.fake import wait_for


def test_a_server_of_before_as_a_unit(home: Path, model: Path, python: Path, tmp_path: Path) -> None:
    words = (str(model), "--engine-python", str(python), "--no-verify", "--name", "mine")
    with running(home, *words) as child:
        before = wait_for(lambda: record(home, "ready"))
        stop(child)
    made = up(home, "mine", "--unit", "--no-verify", "--max-restarts", "7", "--drain", "60")
    assert (made.returncode, made.stderr) == (0, "")
    _require_sound(made.stdout, tmp_path)
    lines = dict(line.split("=", 1) for line in made.stdout.replace(" \\\n ", "").splitlines() if "=" in line)
    assert (lines["Type"], lines["TimeoutStopSec"]) == ("notify", "125")
    assert before.api_key not in made.stdout
    assert f"XDG_STATE_HOME={home / 'state'}" in made.stdout
    program = lines["ExecStart"].split()
    assert program[3:] == ["up", "mine", "--no-verify", "--max-restarts", "7", "--drain", "60"]
    with running(home, *program[4:]) as child:
        after = wait_for(lambda: record(home, "ready"))
        assert after.argv == (*before.argv[:-1], "60")  # how long requests may run at its end is settled anew
        assert (after.api_key, after.port) == (before.api_key, before.port)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=30)
    assert left_over(home) == []


def test_the_unit_waits_as_long_as_the_command_lets_requests_run(home: Path, model: Path, python: Path) -> None:
    words = (str(model), "--engine-python", str(python), "--no-verify", "--name", "mine", "--", "--shutdown-timeout")
    with running(home, *words, "300") as child:
        seen = wait_for(lambda: record(home, "ready"))
        stop(child)
    assert seen.end_s == 330
    assert "TimeoutStopSec=365\n" in up(home, "mine", "--unit").stdout


def _require_sound(text: str, directory: Path) -> None:
    tool = shutil.which("systemd-analyze")
    assert tool, "systemd-analyze is missing: run scripts/install"
    file = directory / "mine.service"
    file.write_text(text, encoding="utf-8")
    done = subprocess.run([tool, "verify", "--man=no", file], capture_output=True, text=True, check=False)
    assert [line for line in done.stderr.splitlines() if "mine.service" in line] == []
    assert done.returncode == 0, done.stderr


def test_without_a_server_of_before_the_way_to_one_is_told(home: Path) -> None:
    for words in ((), ("nothing-here",), ("--", "vllm", "serve", "m")):
        said = up(home, "--unit", *words)
        assert said.returncode == 2
        assert "started before" in said.stderr
        assert "trimtab up MODEL --name NAME" in said.stderr
