"""Which single parameter a next start may change, from logs as vLLM writes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from trimtab.cli.examination import Bound, Examination, Patient, examined
from trimtab.cli.healing import examine
from trimtab.facts.gpu import parse_gpus
from trimtab.messages import msg
from trimtab.supervisor.happenings import ExitStatus, Sign
from trimtab.supervisor.launching import Failure

PROFILE_OOM = (
    "(EngineCore pid=7) INFO 11-30 03:43:15 [gpu_model_runner.py:2] Model loading took 15.2 GiB and 1.7 seconds\n"
    "Traceback (most recent call last):\n"
    '  File "vllm/v1/worker/gpu_worker.py", line 1, in determine_available_memory\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 924.00 MiB. GPU 0 has a total capacity of 23.58 GiB "
    "of which 653.12 MiB is free.\n"
)
HELD = (
    "(EngineCore pid=9) ERROR 11-30 03:43:16 [core.py:9] ValueError: Free memory on device cuda:0 (9.44/23.58 GiB) on "
    "startup is less than desired GPU memory utilization (0.9, 21.22 GiB). Decrease GPU memory utilization or reduce "
    "GPU memory used by other processes.\n"
)
UNKNOWN_FLAG = """usage: vllm serve [model_tag] [options]
vllm: error: unrecognized arguments: --no-such-flag
"""
LENGTH = ("--max-model-len", "4096")
PROGRAM = ("python", "-m", "vllm.entrypoints.cli.main")


def failed(tmp_path: Path, log: str, *flags: str, status: int = 1) -> Failure:
    file = tmp_path / "engine.log"
    file.write_text(log)
    argv = (*PROGRAM, "serve", "meta-llama/Llama-3.1-8B-Instruct", *flags, "--host", "127.0.0.1", "--port", "8000")
    return Failure("x", argv, file, ExitStatus(status), False, None, ("torch.OutOfMemoryError",))


def patient(heal: str = "on", keep: tuple[Bound, ...] = (), pinned: tuple[str, ...] = ()) -> Patient:
    return Patient(program=3, vllm="0.26.0", gpus=parse_gpus("A10"), heal=heal, keep=keep, pinned=pinned)


def test_memory_held_by_others_may_pass(tmp_path: Path) -> None:
    found = examine(failed(tmp_path, HELD), patient()).diagnosis
    assert (found.data["cause"], found.permanent) == ("gpu-memory-held-by-other", False)


def test_a_flag_that_vllm_does_not_have_stays_wrong(tmp_path: Path) -> None:
    found = examine(failed(tmp_path, UNKNOWN_FLAG, "--no-such-flag", status=2), patient()).diagnosis
    assert (found.data["cause"], found.permanent, found.step) == ("flag-unknown", True, None)


def test_a_log_that_tells_nothing_decides_nothing(tmp_path: Path) -> None:
    found = examine(failed(tmp_path, "Hello\n"), patient()).diagnosis
    assert (found.permanent, found.step) == (None, None)


@pytest.mark.parametrize(
    ("served", "sign", "cause"),
    [(True, Sign.HUNG, "hang"), (True, Sign.SILENT, "hang"), (True, Sign.DEAD, "engine-dead-unexplained"),
     (False, None, "start-timeout")],
)  # fmt: skip
def test_what_the_watch_ended_has_a_cause_though_its_log_tells_none(
    tmp_path: Path, served: bool, sign: Sign | None, cause: str
) -> None:
    log = "(APIServer pid=1) INFO:     Application startup complete.\n"
    ended = replace(failed(tmp_path, log, status=-9), served=served, sign=sign, killed_for=msg("no token came"))
    found = examine(ended, patient()).diagnosis
    assert (found.data["cause"], str(found.told), found.permanent) == (cause, "no token came", None)


def test_a_first_start_that_was_killed_is_not_tried_again_and_one_that_served_is(tmp_path: Path) -> None:
    first = failed(tmp_path, "(EngineCore pid=7) INFO 11-30 03:43:15 [x.py:2] Starting to load model\n", status=-9)
    assert examine(first, patient()).diagnosis.permanent is None
    assert examine(replace(first, served=True), patient()).diagnosis.permanent is not True


def test_a_step_changes_one_flag_and_keeps_every_other_word(tmp_path: Path) -> None:
    flags = ("--max-model-len", "4096", "--max-num-seqs", "256", "--gpu-memory-utilization", "0.9")
    found = examine(failed(tmp_path, PROFILE_OOM, *flags, "--max-num-batched-tokens", "131072"), patient()).diagnosis
    assert found.step is not None
    before = failed(tmp_path, PROFILE_OOM, *flags, "--max-num-batched-tokens", "131072").argv
    changed = [(old, new) for old, new in zip(before, found.step.argv, strict=True) if old != new]
    assert changed == [(found.step.before, found.step.after)]
    assert int(found.step.after or 0) < int(found.step.before or 0)


def test_the_child_says_the_same(tmp_path: Path) -> None:
    question = failed(tmp_path, PROFILE_OOM, *LENGTH, "--max-num-batched-tokens", "131072"), patient()
    assert plain(examined(*question)) == plain(examine(*question))
    assert examine(*question).diagnosis.step is not None


def plain(examination: Examination) -> tuple[object, ...]:
    found = examination.diagnosis
    step = found.step and (found.step.argv, found.step.flag, str(found.step.why))
    return (
        examination.shown,
        found.errors,
        found.cause and found.cause.text("zh"),
        found.permanent,
        step,
        dict(found.data),
    )


@pytest.mark.parametrize("log", ["", "\0" * 1000, "x" * 1_000])
def test_odd_logs(tmp_path: Path, log: str) -> None:
    assert examined(failed(tmp_path, log), patient()).diagnosis.step is None


def test_a_log_that_is_gone_leaves_what_was_seen(tmp_path: Path) -> None:
    gone = failed(tmp_path, "")
    gone.log_file.unlink()
    found = examined(gone, patient()).diagnosis
    assert found.errors == ("torch.OutOfMemoryError",)
    assert "HostError" in found.data["diagnosis_failed"]
