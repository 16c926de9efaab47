"""A raw log made fit for the repository: neutral names for this machine, cut tracebacks, lists and progress bars."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

LONGEST_LINE = 360
LONGEST_TELLING = 1200  # errors, and the arguments of a start
ALIKE = 4
KEPT_FRAMES = (1, 3)  # of each traceback: the first and the last
TRIMMED = (
    "paths, host names and addresses are neutral; of each traceback the first frame and the last three stand; lines "
    f"above {LONGEST_LINE} characters (errors {LONGEST_TELLING}) are cut in the middle; of a progress bar the first "
    f"and the last state stand, of lines alike but for numbers the first {ALIKE}"
)
_FRAME = re.compile(r'^(?P<prefix>(?:\([^)]*\) )?(?:ERROR [^\]]*\] ?)?)\s+File "[^"]+", line \d+, in ')
_BAR = re.compile(r"^(?P<prefix>\([^)]*\) )?(?P<what>[^|%]{3,60}?): +\d+%.*\|")
_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9a-f]{32}\b")


def trim(text: str, names: Mapping[str, str]) -> str:
    """`names`: what is put in place of each word of this machine, longest first."""
    for word in sorted(names, key=len, reverse=True):
        text = text.replace(word, names[word])
    text = re.sub(r"(?<![\w:/])/[^\s:]*?/site-packages/", "/site-packages/", text)
    text = re.sub(r"(?<![\w:/])/[^\s:]*?/lib/python3\.(\d+)/", r"/usr/lib/python3.\1/", text)
    text = re.sub(r"/tmp/[\w.-]+", "/tmp/x", text)
    text = _UUID.sub("0" * 8, text)
    lines = [line.rstrip() for line in re.split(r"\r\n|\n|\r(?=.)", text)]
    kept = _without_alike(_without_bars(_without_frames(lines)))
    return "\n".join(map(_shortened, kept)).rstrip("\n") + "\n"


def _shortened(line: str) -> str:
    longest = LONGEST_TELLING if "rror" in line or "non-default args" in line else LONGEST_LINE
    if len(line) <= longest:
        return line
    return line[: longest - 150] + " ... " + line[-145:]


def _without_frames(lines: list[str]) -> list[str]:
    """The middle frames of each run of frames left out, with the source lines that belong to them."""
    kept: list[str] = []
    run: list[list[str]] = []

    def flush() -> None:
        first, last = KEPT_FRAMES
        shown = run if len(run) <= first + last else [*run[:first], *run[-last:]]
        kept.extend(line for frame in shown for line in frame)
        run.clear()

    for line in lines:
        frame = _FRAME.match(line)
        if frame:
            run.append([line])
        elif run and len(run[-1]) < 4 and _belongs(line, run[-1][0]):
            run[-1].append(line)
        else:
            flush()
            kept.append(line)
    flush()
    return kept


def _belongs(line: str, frame: str) -> bool:
    """A frame's source line and its marks are indented deeper than the frame."""
    prefix = frame[: frame.index("File ")]
    return line.startswith(prefix + "  ")


def _without_bars(lines: Iterable[str]) -> list[str]:
    kept: list[str] = []
    last: str | None = None
    count = 0
    for line in lines:
        bar = _BAR.match(line)
        name = bar["what"] if bar else None
        if name is None and not line and last is not None:
            continue
        if name is not None and name == last:
            count += 1
            if count > 2:
                kept.pop()
        else:
            count = 1
        kept.append(line)
        last = name
    return kept


def _without_alike(lines: Iterable[str]) -> list[str]:
    """Of lines that differ in numbers alone, wherever they stand, the first few; frames and errors are not counted."""
    seen: dict[str, int] = {}
    kept = []
    for line in lines:
        shape = re.sub(r"[0-9a-f]{6,}|\d+", "#", line)
        seen[shape] = seen.get(shape, 0) + 1
        if seen[shape] <= ALIKE or len(line) < 40 or "rror" in line or _FRAME.match(line) or line.startswith("    "):
            kept.append(line)
    return kept
