"""A function called in a process of its own: its answer, its error, its end."""

from __future__ import annotations

import os
import sys
import time

import pytest

from trimtab.errors import UsageError
from trimtab.messages import msg
from trimtab.supervisor.apart import call_apart


def test_gives_the_answer_of_another_process_and_loads_nothing_here() -> None:
    assert call_apart("os:getppid") == os.getpid()
    message = msg("{a} of {b}", a=1, b=[2])
    assert call_apart("copy:copy", message) == message
    sys.modules.pop("colorsys", None)
    assert call_apart("colorsys:rgb_to_hsv", 1.0, 1.0, 1.0) == (0.0, 0.0, 1.0)
    assert "colorsys" not in sys.modules


def test_an_error_of_ours_comes_back_as_it_was() -> None:
    with pytest.raises(UsageError, match="--max-model-len does not take") as caught:
        call_apart("trimtab.engine.quantities:whole", "max-model-len", "many")
    assert caught.value.hint


def test_a_process_that_breaks_is_no_answer(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ChildProcessError, match="os:_exit ended with exit code 3"):
        call_apart("os:_exit", 3)
    with pytest.raises(ChildProcessError, match="ended with exit code 1"):
        call_apart("os:listdir", "/no/such/place")
    assert "FileNotFoundError" in capfd.readouterr().err


def test_what_prints_does_not_come_between(capfd: pytest.CaptureFixture[str]) -> None:
    assert call_apart("builtins:print", "said") is None
    assert capfd.readouterr().err == "said\n"


def test_who_asked_may_end_it_early() -> None:
    began = time.monotonic()
    with pytest.raises(ChildProcessError, match="ended with exit code -9"):
        call_apart("time:sleep", 60, begun=lambda end: end())
    assert time.monotonic() - began < 20


def test_what_takes_too_long_is_ended() -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError, match="time:sleep was not done after 1 s"):
        call_apart("time:sleep", 60, bound_s=1)
    assert time.monotonic() - began < 20
