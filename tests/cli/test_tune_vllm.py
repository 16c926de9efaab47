"""`trimtab tune` on the real vLLM, two layers of random weights: measured, and by its counters no second start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.tune_grid import make

from tests.cli.test_up import environment, left_over
from trimtab.supervisor.environments import Engine

pytestmark = pytest.mark.vllm
LOAD = ("--context", "256", "--concurrency", "8", "--input", "64", "--output", "16", "--rounds", "2", "--round", "3")


def test_fewer_at_once_is_foreseen_from_what_the_plan_was_measured_to_do(
    tmp_path: Path, cpu_engine: Engine, demo_model: Path
) -> None:
    make(demo_model, tmp_path / "tiny")
    plan, journal = tmp_path / "tuned.json", tmp_path / "trials.jsonl"
    words = ["--engine-python", str(cpu_engine.python), "--journal", str(journal), "-o", str(plan), "--json"]
    fixed = ["--try", "max-num-seqs=1", "--", "--enforce-eager", "--load-format", "dummy"]
    done = subprocess.run(
        [sys.executable, "-m", "trimtab", "tune", str(tmp_path / "tiny"), *words, *LOAD, *fixed],
        env=environment(tmp_path / "home"), cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["ending"], found["starts"]) == ("settled", 1)
    trials = [json.loads(line)["trial"] for line in journal.read_bytes().splitlines()[1:]]
    assert [one["kind"] for one in trials] == ["measured", "skipped"]
    assert all(each["output_tokens_s"] > 0 and each["server"] for each in trials[0]["rounds"])
    assert "fewer at once would only wait longer" in trials[1]["cause"]["template"]
    assert "--max-num-seqs 8" in " ".join(json.loads(plan.read_text())["command"])
    assert left_over(tmp_path / "home") == []
