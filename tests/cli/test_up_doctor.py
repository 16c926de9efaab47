"""`trimtab up` after a failure: the doctor's cause with its numbers and lines, and the command to start with."""

from __future__ import annotations

from pathlib import Path

from tests.cli.test_doctor import HELD
from tests.cli.test_up import up


def test_a_start_that_fails_shows_the_doctor_s_answer(home: Path, model: Path, python: Path, tmp_path: Path) -> None:
    log = tmp_path / "said.log"
    log.write_text(HELD)
    knobs = f"--die load --print {log} --exit-code 1"
    words = ("--engine-python", str(python), "--no-verify", "--no-restart")
    done = up(home, str(model), *words, knobs=knobs)
    assert done.returncode == 1, done.stderr
    assert "LOG001 memory-held-by-others" in done.stderr
    assert "61.2 of 79.25 GiB are free and --gpu-memory-utilization 0.95 asks for 75.29 GiB" in done.stderr
    assert "ValueError: Free memory on device" in done.stderr
    assert "--gpu-memory-utilization 0.75" in done.stderr


def test_a_failure_that_no_rule_knows_still_shows_its_most_telling_line(
    home: Path, model: Path, python: Path, tmp_path: Path
) -> None:
    log = tmp_path / "said.log"
    log.write_text("Traceback (most recent call last):\n  File \"a.py\", line 1, in b\nKeyError: 'never seen'\n")
    words = ("--engine-python", str(python), "--no-verify", "--no-restart")
    done = up(home, str(model), *words, knobs=f"--die load --print {log} --exit-code 1")
    assert done.returncode == 1
    assert "KeyError: 'never seen'" in done.stderr
