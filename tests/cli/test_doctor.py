"""`trimtab doctor` as a user calls it: a file, standard input, a server's name; text, JSON, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

LOGS = Path(__file__).parents[1] / "engine" / "logs"
HELD = (
    "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:286] vLLM API server version 0.26.0\n"
    "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:273] non-default args: {'model': 'Qwen/Qwen2.5-7B-Instruct', "
    "'gpu_memory_utilization': 0.95}\n"
    "(EngineCore pid=2) ERROR 11-30 03:43:16 [core.py:9] ValueError: Free memory on device cuda:0 (61.2/79.25 GiB) on "
    "startup is less than desired GPU memory utilization (0.95, 75.29 GiB). Decrease GPU memory utilization or reduce "
    "GPU memory used by other processes.\n"
    "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
)


def doctor(*words: str, text: str | None = None, state: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = {"PATH": "/usr/bin", "TRIMTAB_LANG": "en", "LC_ALL": "C.UTF-8"}
    if state is not None:
        env["XDG_STATE_HOME"] = str(state)
    return subprocess.run(
        [sys.executable, "-m", "trimtab", "doctor", *words],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        env=env,
    )


def test_the_cause_with_numbers_evidence_and_the_command_to_start_with() -> None:
    done = doctor("-", text=HELD)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "error LOG001 memory-held-by-others (95%)"
    assert "61.2 of 79.25 GiB are free" in lines[1]
    assert lines[2].startswith("    line 3: ValueError: Free memory")
    assert "vllm serve Qwen/Qwen2.5-7B-Instruct --gpu-memory-utilization 0.75" in lines[3]


def test_json_is_the_linter_s_schema() -> None:
    done = doctor("-", "--json", text=HELD)
    found = json.loads(done.stdout)
    assert found["schema"] == "trimtab.findings/1"
    first = found["findings"][0]
    assert (first["code"], first["line"], first["cause"]) == ("LOG001", 3, "gpu-memory-held-by-other")
    assert first["evidence"]
    assert first["confidence"] == 0.95
    assert first["fix"]["after"] == "vllm serve Qwen/Qwen2.5-7B-Instruct --gpu-memory-utilization 0.75"
    assert found["vllm"] == "0.26.0"


@pytest.mark.parametrize("name", ["cpu-0.32-eager", "cpu-0.32-compiled", "h200-0.26-q7-default"])
def test_a_healthy_log(name: str) -> None:
    done = doctor(str(LOGS / f"{name}.log"))
    assert done.returncode == 0, done.stdout
    assert "no failure in" in done.stdout


def test_an_error_that_no_rule_knows_is_a_failure_with_a_code_of_its_own() -> None:
    done = doctor(
        "-", text="Traceback (most recent call last):\n  File \"a.py\", line 1, in b\nKeyError: 'never seen'\n"
    )
    assert done.returncode == 1
    assert done.stdout.startswith("error LOG999 failure-not-recognised")
    assert "line 3: KeyError: 'never seen'" in done.stdout


@pytest.mark.parametrize("words", [["/no/such/file.log"], ["no-such-server"], [], ["-", "--select", "LOG777"]])
def test_what_cannot_be_worked_on(words: list[str], tmp_path: Path) -> None:
    done = doctor(*words, text="", state=tmp_path)
    assert done.returncode == 2
    assert "  -> " in done.stderr
    assert done.stdout == ""


def test_a_client_s_error_text_is_judged_by_the_client_rules() -> None:
    done = doctor("-", "--json", text="openai.AuthenticationError: Error code: 401 - {'error': 'Unauthorized'}\n")
    assert done.returncode == 1
    first = json.loads(done.stdout)["findings"][0]
    assert first["code"].startswith("CLT")
    assert first["line"] == 1


def test_requests_that_a_serving_server_refused_are_no_failure_of_its() -> None:
    text = (
        "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:286] vLLM API server version 0.26.0\n"
        "(APIServer pid=1) INFO:     Application startup complete.\n"
        '(APIServer pid=1) INFO:     10.0.0.1:5 - "POST /v1/chat/completions HTTP/1.1" 401 Unauthorized\n'
    )
    assert doctor("-", text=text).returncode == 0
