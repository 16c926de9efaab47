"""What vLLM, PyTorch, NCCL, Ray, the hub's libraries and many clients print when something fails, and when not.

`said_by` is the report that quotes the line, else the program. `stage` is where the server was.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trimtab.engine.logs import read_log
from trimtab.rules.doctor import diagnose
from trimtab.rules.rule import Severity

FIXTURES = Path(__file__).parents[1] / "fixtures"
WORDINGS = [json.loads(line) for line in (FIXTURES / "wordings.jsonl").read_text("utf-8").splitlines()]
STAGES = {
    "load": "INFO 01-01 00:00:00 [gpu_model_runner.py:1] Starting to load model...\n",
    "profile": "INFO 01-01 00:00:00 [gpu_model_runner.py:1] Model loading took 10.0000 GiB and 10.000000 seconds\n",
    "graph": "INFO 01-01 00:00:00 [gpu_model_runner.py:1] Capturing the model for CUDA graphs.\n",
    "serve": "INFO:     Application startup complete.\n",
}
ORDINARY = (FIXTURES / "logs" / "ordinary_while_serving.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda w: f"{w['said_by']}: {w['text'][:40]!r}")
def test_the_cause_comes_first(wording: dict[str, Any]) -> None:
    text = STAGES.get(wording["stage"], "") + wording["text"]
    found = diagnose(read_log([text.encode()])).report.findings
    assert found
    assert (found[0].rule.cause or found[0].rule.name) in wording["causes"]


@pytest.mark.parametrize("well", sorted((FIXTURES / "logs" / "cpu").glob("well-*.log")), ids=lambda f: f.stem)
def test_what_a_server_says_beside_its_work_is_no_failure(well: Path) -> None:
    lines = well.read_text("utf-8").splitlines()
    served = next((n for n, line in enumerate(lines, 1) if "startup complete" in line), len(lines))
    text = "\n".join([*lines[:served], *ORDINARY, *lines[served:]])
    found = diagnose(read_log([text.encode()])).report.findings
    assert [f.rule.code for f in found if f.severity is Severity.ERROR] == []
