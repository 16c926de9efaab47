"""Words that argparse did not recognise, judged by the flag tables of all versions. Not a rule."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto

import msgspec

from trimtab.engine.flags import FlagTable, history, minors, successor
from trimtab.rules.log.context import Hit, LogContext
from trimtab.rules.runner import release


class Kind(Enum):
    """What an unrecognised flag is."""

    REMOVED = auto()  # older versions had it
    NEWER = auto()  # newer versions have it
    ELSEWHERE = auto()  # the OpenAI server of this version has it: another program was started
    NEVER = auto()


class Unrecognised(msgspec.Struct, frozen=True):
    """A flag, by its spelling and long name; the version it went or came with, or the nearest that there is."""

    spelling: str
    name: str
    kind: Kind
    gone_in: str = ""
    since: str = ""
    near: str = ""


def of_kind(context: LogContext, hit: Hit, *kinds: Kind) -> Iterator[Unrecognised]:
    """Those of the hit's words (its group `words`) that are flags of these kinds, in order."""
    demo = "api_server" in hit.entry.text.partition(":")[0]
    for word in hit["words"].split():
        if word.startswith("-") and not word.lstrip("-").isdigit():
            found = _judge(word.partition("=")[0], context.version, demo)
            if found.kind in kinds:
                yield found


def successor_of(name: str) -> str:
    """How the flag's successor is written; empty where none is known."""
    after = successor(name)
    return after.to if after is not None and after.to else ""


def _judge(spelling: str, version: str | None, demo: bool) -> Unrecognised:
    name = spelling.lstrip("-").replace("_", "-").partition(".")[0]
    span = history(name) or history(name.removeprefix("no-"))
    if span is None:
        table = FlagTable.for_version(version or minors()[-1])
        near = table.nearest(f"--{name}", 1)
        return Unrecognised(spelling, name, Kind.NEVER, near=near[0] if near else "")
    if span.until is not None and (version is None or release(version)[:2] > release(span.until)):
        order = minors()
        after = order.index(span.until) + 1
        return Unrecognised(spelling, name, Kind.REMOVED, gone_in=order[after] if after < len(order) else "")
    since = span.since or minors()[0]
    if version is not None and release(version)[:2] < release(since):
        return Unrecognised(spelling, name, Kind.NEWER, since=since)
    return Unrecognised(spelling, name, Kind.ELSEWHERE if demo else Kind.NEWER, since=since)
