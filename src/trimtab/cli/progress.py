"""Draw the progress of a long task on stderr: a spinner or bar with elapsed time, plain lines when not a terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from trimtab.supervisor.progress import Observer, Progress

SAME_PHASE_S = 10.0  # a plain line again for the same phase, at most this often
SILENT_S = 30.0  # and at least this often, when nothing new is heard


@contextmanager
def drawn(lang: str, stream: TextIO | None = None) -> Iterator[Observer]:
    """Something to give each Progress to while the task runs; texts in `lang`."""
    out = stream if stream is not None else sys.stderr
    if not out.isatty():
        lines = _Lines(lang, out)
        over = threading.Event()
        teller = threading.Thread(target=lines.repeat, args=(over, SILENT_S), name="progress", daemon=True)
        teller.start()
        try:
            yield lines.show
        finally:
            over.set()
            teller.join()
        return
    with _bar(lang, out) as show:
        yield show


class _Lines:
    def __init__(self, lang: str, out: TextIO) -> None:
        self._lang, self._out = lang, out
        self._started = time.monotonic()
        self._phase, self._at = "", 0.0
        self._last: Progress | None = None

    def repeat(self, over: threading.Event, silent_s: float) -> None:
        """In a thread of its own: the last step once more after each `silent_s` without a line, until `over`."""
        while not over.wait(max(silent_s / 10, silent_s - (time.monotonic() - self._at))):
            if self._last is not None and time.monotonic() - self._at >= silent_s:
                self._print(self._last)

    def show(self, step: Progress) -> None:
        now, phase = time.monotonic(), step.phase.text(self._lang)
        if phase == self._phase and now - self._at < SAME_PHASE_S:
            return
        self._phase, self._last = phase, step
        self._print(step)

    def _print(self, step: Progress) -> None:
        self._at = time.monotonic()
        words = " ".join(word for word in (step.phase.text(self._lang), step.detail, amount(step)) if word)
        print(f"[{self._at - self._started:5.1f} s] {words}", file=self._out, flush=True)


@contextmanager
def _bar(lang: str, out: TextIO) -> Iterator[Observer]:
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    tail = (BarColumn(bar_width=24), TextColumn("{task.fields[amount]}"))
    with Bars(*columns, *tail, console=Console(file=out), transient=True) as bars:
        task = bars.add_task("", total=None, amount="")

        shown = ""

        def show(step: Progress) -> None:
            nonlocal shown
            words = f"{step.phase.text(lang)} {step.detail}".strip()
            told, shown = shown, words
            bars.update(
                task, description=words, total=step.total, completed=step.done or 0, amount=amount(step),
                refresh=words != told,  # a step that is soon over is seen too
            )  # fmt: skip

        yield show


def amount(step: Progress) -> str:
    """What is done of what: "512.0 MB", "98.4 of 269.1 MB", "3 of 7 files", "" when nobody can know."""
    if step.done is None or (step.unit == "B" and step.done == 0):
        return ""
    if step.unit == "B":
        of = f" of {step.total / 1e6:.1f}" if step.total else ""
        return f"{step.done / 1e6:.1f}{of} MB"
    of = f" of {step.total}" if step.total and step.total != step.done else ""
    return f"{step.done}{of} {step.unit}".strip()
