"""The most telling error line of many, for a failure that no rule recognises. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from trimtab.engine.logs.events import Kind, LogEvent

# Lines that only say that another process failed, or that everything ends now: never the cause.
_CONSEQUENCE = re.compile(
    r"Engine core initialization failed|EngineDeadError|EngineCore (?:failed to start|encountered a fatal error)"
    r"|EngineCore encountered an issue|WorkerProc (?:failed to start|initialization failed|hit an exception)"
    r"|died unexpectedly"
    r"|died with exit code|Engine process failed to start|Exception occurred while running API servers"
    r"|Executor failed|cancelled|CancelledError|BrokenPipeError|EOFError|KeyboardInterrupt|SystemExit|terminated$"
    r"|Engine loop is not running|AsyncLLM output_handler failed|Application startup failed|TCPStore|Traceback"
)


def is_consequence(text: str) -> bool:
    """Whether an error only says that something else failed before it."""
    return _CONSEQUENCE.search(text) is not None


def failure_summary(events: Iterable[LogEvent], most: int = 3) -> tuple[str, ...]:
    """The most telling error lines, likeliest first: what a traceback ends with before what the logger calls an error,
    first before last, consequences left out. Empty when the log holds no error.
    """
    exceptions: list[str] = []
    errors: list[str] = []
    consequences: list[str] = []
    for event, whole in _with_continuations(events):
        text = _told(whole)
        told = consequences if _CONSEQUENCE.search(text) else exceptions if event.kind is Kind.EXCEPTION else errors
        if not any(_repeats(text, earlier) for earlier in (*exceptions, *errors, *consequences)):
            told.append(text)
    return tuple([*exceptions, *errors][:most] or consequences[:1])


_VALIDATION = re.compile(r".*ValidationError: \d+ validation errors? for (\w+) (?:(?:Value|Assertion) error, )?(.*)")
_PYDANTIC_TAIL = re.compile(r" ?(?:\[type=\w+, .*|For further information visit .*)$")


def _told(text: str) -> str:
    """Pydantic's report reduced to what it says: `ModelConfig: ...`."""
    found = _VALIDATION.match(text)
    return f"{found[1]}: {_PYDANTIC_TAIL.sub('', found[2])}" if found else text


def _repeats(text: str, earlier: str) -> bool:
    """Whether `text` is `earlier` told again: by another process, wrapped in another exception or quoted in one."""
    message = earlier.partition(": ")[2] or earlier
    return message in text or text in earlier


def _with_continuations(events: Iterable[LogEvent]) -> Iterable[tuple[LogEvent, str]]:
    """Each error or exception with the lines that belong to its text (pydantic and argparse spread over several)."""
    open_events: dict[int, tuple[LogEvent, list[str]]] = {}
    for event in events:
        key = event.pid
        held = open_events.get(key)
        if held and _continues(held[0], event, len(held[1])):
            held[1].append(event.text.strip())
            continue
        if held:
            yield held[0], " ".join(open_events.pop(key)[1])
        if event.kind in (Kind.EXCEPTION, Kind.ERROR):
            open_events[key] = (event, [event.text.strip()])
    for event, lines in open_events.values():
        yield event, " ".join(lines)


def _continues(first: LogEvent, event: LogEvent, lines: int) -> bool:
    """An exception's text goes on in lines of the same level that are no frames of a traceback."""
    if first.kind is not Kind.EXCEPTION or lines > 4 or event.level != first.level or not event.text.strip():
        return False
    if event.kind in (Kind.PLAIN, Kind.ERROR):
        return not event.text.startswith("Process ")
    return (
        event.kind is Kind.TRACEBACK
        and event.text.startswith("  ")
        and not event.text.lstrip().startswith(("File ", "^"))
    )
