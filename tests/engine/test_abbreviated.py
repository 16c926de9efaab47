"""Flags that a command abbreviates."""

from __future__ import annotations

from trimtab.engine.abbreviated import completed
from trimtab.engine.command import LaunchCommand


def names(*words: str) -> list[str]:
    return [use.name for use in completed(LaunchCommand.from_argv(["vllm", "serve", "m", *words])).flags]


def test_a_beginning_of_one_flag_is_that_flag() -> None:
    assert names("--tensor-parallel", "2", "--gpu_memory", "0.8", "--enforce") == [
        "tensor-parallel-size", "gpu-memory-utilization", "enforce-eager",
    ]  # fmt: skip


def test_whole_ambiguous_and_unknown_flags_stay() -> None:
    assert names("--max-model-len", "8", "--max", "3", "--frobnicate", "1") == ["max-model-len", "max", "frobnicate"]
