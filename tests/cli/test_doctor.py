"""`trimtab doctor` as a user calls it: a file, standard input, a server's name; text, JSON, exit codes."""

from __future__ import annotations

import bz2
import gzip
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from trimtab.engine.registry import ServerRecord
from trimtab.supervisor import registry

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


@pytest.mark.parametrize("cut", [None, -20])
def test_a_log_that_gzip_packed_whole_or_cut(cut: int | None, tmp_path: Path) -> None:
    packed = tmp_path / "server.log.gz"
    noise = random.Random(1).randbytes(60_000).hex() + "\n"  # so that the cut does not reach the failure
    packed.write_bytes((gzip.compress(b"an older part\n") + gzip.compress((HELD + noise).encode()))[:cut])
    done = doctor(str(packed))
    assert done.returncode == 1
    assert done.stdout.startswith("error LOG001")
    assert "line 4: ValueError: Free memory" in done.stdout


@pytest.mark.parametrize(
    "content",
    [bz2.compress(HELD.encode()), random.Random(2).randbytes(5000), b"\x7fELF\x02\x01\x01" + bytes(range(32)) * 9],
)
def test_what_is_no_text_is_no_healthy_log(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "server.log"
    file.write_bytes(content)
    done = doctor(str(file))
    assert done.returncode == 2
    assert "not text" in done.stderr


@pytest.mark.parametrize("text", ["", "\n\n", "a" * 3_000_000, "# A page\n\nof something else\n"])
def test_a_text_in_which_nothing_is_vllms_is_no_healthy_log(text: str, tmp_path: Path) -> None:
    file = tmp_path / "server.log"
    file.write_text(text, encoding="utf-8")
    for done in (doctor(str(file)), doctor("-", text=text), doctor(str(file), "--json")):
        assert done.returncode == 2
        assert f"nothing of vLLM's was found in {len(text.splitlines())} lines" in done.stderr
        assert done.stdout == ""


def test_how_a_process_ended_is_judged_without_any_line(tmp_path: Path) -> None:
    file = tmp_path / "server.log"
    file.touch()
    done = doctor(str(file), "--exit-status", "137")
    assert done.returncode == 1
    assert done.stdout.startswith("error LOG160")


@pytest.mark.parametrize("word", ["", "  "])
def test_a_word_of_nothing_is_not_this_directory(word: str, tmp_path: Path) -> None:
    done = doctor(word, state=tmp_path)
    assert done.returncode == 2
    assert "names no log" in done.stderr


def test_a_damaged_gzip_file_says_so(tmp_path: Path) -> None:
    file = tmp_path / "server.log.gz"
    file.write_bytes(b"\x1f\x8b" + b"damaged" * 9)
    done = doctor(str(file))
    assert done.returncode == 2
    assert "gzip" in done.stderr


def test_a_hole_at_the_start_of_a_truncated_log_is_passed(tmp_path: Path) -> None:
    file = tmp_path / "server.log"
    file.write_bytes(bytes(9000) + HELD.encode())
    assert doctor(str(file)).stdout.startswith("error LOG001")


@pytest.mark.parametrize(
    "word", ["localhost:8000", "10.0.0.1:8000/v1", "http//host:8000/v1", "http:/host/v1", "[::1]:80"]
)
def test_a_word_that_is_meant_as_a_url(word: str, tmp_path: Path) -> None:
    done = doctor(word, state=tmp_path)
    assert done.returncode == 2
    assert "trimtab doctor http://HOST:PORT/v1" in done.stderr


def _server(state: Path, logs: dict[str, str]) -> None:
    """A server `web` that ended; `logs` are its log and those set aside."""
    home = registry.directory(state / "trimtab", "web")
    home.mkdir(parents=True)
    for name, text in logs.items():
        (home / name).write_text(text, encoding="utf-8")
    record = ServerRecord(
        name="web",
        state="crashed",
        pid=1,
        pid_started=0.0,
        host="127.0.0.1",
        port=8000,
        base_url="http://127.0.0.1:8000/v1",
        log=str(home / "engine.log"),
    )
    registry.write(state / "trimtab", record)


def test_a_failure_that_lies_in_a_log_set_aside(tmp_path: Path) -> None:
    begun = HELD.partition("\n")[0] + "\n"
    _server(tmp_path, {"engine.log": begun, "engine.log.1": begun, "engine.log.2": HELD, "engine.log.3": begun})
    done = doctor("web", state=tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith("error LOG001")


def test_the_failure_of_the_newest_log_counts(tmp_path: Path) -> None:
    newest = HELD.replace("ValueError: Free", "ValueError: No available memory for the cache blocks. Free")
    _server(tmp_path, {"engine.log": newest, "engine.log.1": HELD})
    assert "No available memory" in doctor("web", state=tmp_path).stdout


def test_a_misspelt_name_is_told_the_nearest(tmp_path: Path) -> None:
    _server(tmp_path, {"engine.log": HELD})
    done = doctor("wbe", state=tmp_path)
    assert done.returncode == 2
    assert "Did you mean web?" in done.stderr
