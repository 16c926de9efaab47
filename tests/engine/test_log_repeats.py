"""A log that tells the same again and again: what is new in it is found all the same, with all that belongs to it."""

from __future__ import annotations

import random
from collections.abc import Iterator

from trimtab.engine.logs import EntryKind, read_log
from trimtab.engine.logs.reader import START_LINES
from trimtab.engine.logs.repeats import HELD, MOST_KINDS, MOST_SAME, OFTEN, Repeats

START = b"(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:286] vLLM API server version 0.26.0\n"
SERVING = START + b"INFO:     Application startup complete.\n" + b"INFO:     ok\n" * START_LINES
AT = b"(EngineCore pid=7) ERROR 11-30 03:50:00 [core.py:9] "


def traceback(last: bytes, function: bytes = b"execute_model", at: bytes = AT) -> bytes:
    lines = (b"Traceback (most recent call last):", b'  File "core.py", line 7, in step', b'  File "w.py", line 1, in ')
    return b"".join(
        at + line for line in (lines[0] + b"\n", lines[1] + b"\n", lines[2] + function + b"\n", last + b"\n")
    )


def test_a_new_end_of_a_traceback_known_well_keeps_its_frames() -> None:
    known = b"".join(traceback(b"ValueError: request %d is odd" % n) for n in range(3 * OFTEN))
    found = read_log([SERVING, known, traceback(b"torch.OutOfMemoryError: CUDA out of memory.")])
    last = found.of(EntryKind.EXCEPTION)[-1]
    assert last.text == "torch.OutOfMemoryError: CUDA out of memory."
    assert [frame.rpartition(" ")[2] for frame in last.frames] == ["step", "execute_model"]


def test_what_a_new_start_tells_is_new_though_the_one_before_told_it_often() -> None:
    error = AT + b"ValueError: No available memory for the cache blocks.\n"
    found = read_log([SERVING, error * 3 * OFTEN, START, error])
    assert [e.start for e in found.of(EntryKind.EXCEPTION)] == [1, 2]


def test_a_line_is_due_until_its_like_was_read_often_and_once_more_before_a_new_one() -> None:
    repeats = Repeats()
    alike = [repeats.due(n, [b"request %d of a client that went away aborted" % n]) for n in range(OFTEN + HELD * 2)]
    assert [len(due) for due in alike] == [1] * OFTEN + [0] * HELD * 2
    due = repeats.due(999_999, [b"something else"])
    assert [number for number, _ in due] == [*range(OFTEN + HELD, OFTEN + HELD * 2), 999_999]


def test_lines_of_one_chunk_and_of_many_are_due_alike() -> None:
    rng = random.Random(5)
    lines = [rng.choice((b"a frame", b"another frame", b"request %d is odd" % n)) for n in range(4000)]
    lines += [b"the first of its kind", *lines[:50], b"INFO quiet", b"the second, quite different"]
    one, many = Repeats(), Repeats()
    whole = one.due(1, lines, (b"INFO",))
    apart = [due for n in range(0, len(lines), 7) for due in many.due(n + 1, lines[n : n + 7], (b"INFO",))]
    assert whole == apart
    assert whole[-1] == (len(lines), lines[-1])
    assert (len(lines) - 1, b"INFO quiet") not in whole


def test_what_is_remembered_to_the_letter_is_bounded() -> None:
    lines = [b"request %09d of a client that went away" % n for n in range(MOST_SAME * 2 + OFTEN)]
    due = Repeats().due(1, [*lines, b"x" * 5000, b"something else"])
    assert [number for number, _ in due][-2:] == [len(lines) + 1, len(lines) + 2]
    assert len(due) == OFTEN + HELD + 2


def test_of_a_log_with_no_end_of_kinds_those_that_tell_of_trouble_are_read() -> None:
    def words(count: int) -> Iterator[bytes]:
        for n in range(count):
            yield b"a word %s\n" % bytes(ord("g") + int(digit) for digit in str(n))

    error = b"RuntimeError: the end\n"
    found = read_log([SERVING, b"".join(words(MOST_KINDS + 5000)), error])
    assert [e.text for e in found.of(EntryKind.EXCEPTION)] == ["RuntimeError: the end"]
    repeats = Repeats()
    due = [repeats.due(n, [line]) for n, line in enumerate(words(MOST_KINDS + 5000))]
    assert sum(map(len, due)) == MOST_KINDS
