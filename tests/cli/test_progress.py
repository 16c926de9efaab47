"""Progress is drawn as lines on a pipe and as a bar on a terminal, in the reader's language."""

from __future__ import annotations

import errno
import io
import os
import pty
import threading
from collections.abc import Iterator

import pytest

from tests.supervisor.fake import wait_for
from trimtab.cli.progress import _Lines, amount, drawn
from trimtab.messages import msg
from trimtab.supervisor.progress import Progress

FETCH, INSTALL = msg("fetching", zh="下载"), msg("installing", zh="安装")


def test_lines_one_a_phase_not_one_a_step() -> None:
    out = io.StringIO()
    with drawn("en", out) as show:
        show(Progress(FETCH, "a"))
        show(Progress(FETCH, "b"))
        show(Progress(INSTALL, "", 3, 3, "packages"))
    lines = [line.split("] ")[1] for line in out.getvalue().splitlines()]
    assert lines == ["fetching a", "installing 3 packages"]


def test_a_silent_phase_is_told_again() -> None:
    out, over = io.StringIO(), threading.Event()
    lines = _Lines("en", out)
    lines.show(Progress(FETCH, "a"))
    teller = threading.Thread(target=lines.repeat, args=(over, 0.02))
    teller.start()
    wait_for(lambda: out.getvalue().count("fetching a\n") >= 3)
    over.set()
    teller.join()


def test_lines_in_chinese() -> None:
    out = io.StringIO()
    with drawn("zh", out) as show:
        show(Progress(FETCH, "a"))
    assert "下载 a" in out.getvalue()


def pieces(terminal: int) -> Iterator[bytes]:
    """What was written to a terminal whose other end is closed; Linux ends that with EIO."""
    try:
        while piece := os.read(terminal, 65536):
            yield piece
    except OSError as error:
        if error.errno != errno.EIO:
            raise


def test_terminal_shows_a_bar_and_the_amount() -> None:
    parent, child = pty.openpty()
    with os.fdopen(child, "w") as terminal, drawn("en", terminal) as show:
        show(Progress(FETCH, "model.safetensors", 98_400_000, 269_060_552, "B"))
    seen = b"".join(pieces(parent)).decode()
    os.close(parent)
    assert "fetching model.safetensors" in seen
    assert "98.4 of 269.1 MB" in seen


@pytest.mark.parametrize(
    ("done", "total", "unit", "text"),
    [
        (None, None, "", ""),
        (0, None, "B", ""),
        (512_000_000, None, "B", "512.0 MB"),
        (3, 7, "files", "3 of 7 files"),
        (7, 7, "files", "7 files"),
    ],
)
def test_amount(done: int | None, total: int | None, unit: str, text: str) -> None:
    assert amount(Progress(FETCH, "", done, total, unit)) == text
