"""Ranks that a launch command starts on one host."""

from __future__ import annotations

import pytest

from trimtab.engine.command import LaunchCommand
from trimtab.errors import UsageError
from trimtab.plan.ranks import ranks_of


@pytest.mark.parametrize(
    ("flags", "here"),
    [
        ("", 1),
        ("-tp 4", 4),
        ("--tensor-parallel-size 4 --pipeline-parallel-size 2", 8),
        ("-tp 2 -dp 4", 8),
        ("-tp 2 -dp 16 --data-parallel-size-local 2", 4),
        ("-tp 8 -pp 2 --nnodes 2", 8),
        ("-tp 2 -dp 8 --data-parallel-rank 0", 2),
        ("-tp 16 --distributed-executor-backend ray", None),
    ],
)
def test_here(flags: str, here: int | None) -> None:
    assert ranks_of(LaunchCommand.from_argv(["vllm", "serve", "m", *flags.split()])).here == here


def test_said() -> None:
    command = LaunchCommand.from_argv(["vllm", "serve", "m", "-tp", "2", "-dp", "3"])
    assert ranks_of(command).flags == "--tensor-parallel-size 2 --data-parallel-size 3"


@pytest.mark.parametrize("size", ["0", "-1", "x", "1.5.2"])
def test_no_size(size: str) -> None:
    with pytest.raises(UsageError, match="--tensor-parallel-size does not take"):
        ranks_of(LaunchCommand.from_argv(["vllm", "serve", "m", f"--tensor-parallel-size={size}"]))
