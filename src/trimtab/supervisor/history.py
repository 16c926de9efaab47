"""What happened to one server, from its journal: its starts, how long each state lasted, what was found and changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.messages import Message
from trimtab.supervisor.journal import Entry
from trimtab.supervisor.states import State

SERVED = frozenset({"ready", "degraded"})
ENDS = frozenset({"stopped", "failed_to_start", "crashed", "given_up"})
CRASHES = frozenset({"crashed", "failed_to_start"})


class Stay(msgspec.Struct, frozen=True):
    """One state and how long it lasted; `seconds` None: it is the last one known."""

    state: str
    at: float  # seconds since the epoch
    seconds: float | None
    reason: Message


class Found(msgspec.Struct, frozen=True):
    """A diagnosis of the journal: the cause in one sentence, None where it is not known, and what is kept with it."""

    at: float
    cause: Message | None
    data: Mapping[str, Any]


class Change(msgspec.Struct, frozen=True):
    """One parameter that was stepped back after this start; None: it was not given."""

    at: float
    flag: str
    before: str | None
    after: str | None
    why: Message


class Note(msgspec.Struct, frozen=True):
    """Anything else of note: a signal, cards that stay full, an event that could not be told."""

    at: float
    what: str
    text: Message


class Start(msgspec.Struct, frozen=True):
    """One start of the engine, from its process to its end. `numbers` are those of its log (weights_gib, kv_tokens)."""

    number: int
    at: float
    stays: tuple[Stay, ...]
    numbers: Mapping[str, float]
    diagnosis: Found | None = None
    change: Change | None = None
    notes: tuple[Note, ...] = ()
    returncode: int | None = None

    @property
    def ready_after_s(self) -> float | None:
        """From its first state to its first token."""
        ready = next((stay.at for stay in self.stays if stay.state == State.READY), None)
        return max(0.0, ready - self.at) if ready is not None else None

    @property
    def end(self) -> Stay | None:
        """How the engine ended; None while it runs."""
        return next((stay for stay in self.stays if stay.state in ENDS), None)

    @property
    def ended_by_itself(self) -> bool:
        """Whether it ended unasked, and not by a signal of its supervisor: only then its exit status tells a cause."""
        unasked = self.end is not None and self.end.state in CRASHES
        return unasked and all(note.what != "signal" for note in self.notes)

    def served_s(self, now: float) -> float:
        return sum(
            stay.seconds if stay.seconds is not None else max(0.0, now - stay.at)
            for stay in self.stays
            if stay.state in SERVED
        )


def starts(entries: Iterable[Entry]) -> list[Start]:
    """The starts in a journal, oldest first."""
    groups: list[list[Entry]] = []
    over = True
    for entry in entries:
        alone = over and entry.state in ENDS - {State.GIVEN_UP}  # given up is the word on the start that just ended
        begins = entry.what == "state" and (entry.state == State.STARTING or alone)
        if begins or not groups:
            groups.append([])
        if entry.what == "state":
            over = entry.state in ENDS
        groups[-1].append(entry)
    groups = [group for group in groups if any(entry.what == "state" for entry in group)]
    return [_start(number, group, _next_at(groups, number)) for number, group in enumerate(groups, 1)]


def failed_last(starts: Sequence[Start]) -> Start | None:
    """The newest start that ended unasked; None where the newest of all ended as asked, or none failed."""
    for start in reversed(starts):
        if start.end is not None:
            return start if start.end.state in CRASHES else None
    return None


def _next_at(groups: list[list[Entry]], number: int) -> float | None:
    return groups[number][0].at if number < len(groups) else None


def _start(number: int, entries: list[Entry], next_at: float | None) -> Start:
    states = [entry for entry in entries if entry.what == "state"]
    numbers: dict[str, float] = {}
    for entry in entries:
        if entry.what == "log":
            numbers |= {k: float(v) for k, v in entry.data.items() if isinstance(v, int | float)}
    return Start(
        number=number,
        at=entries[0].at,
        stays=tuple(_stay(states, place, next_at) for place in range(len(states))),
        numbers=numbers,
        diagnosis=next((_found(e) for e in reversed(entries) if e.what == "diagnosis"), None),
        change=next((_change(e) for e in reversed(entries) if e.what == "step"), None),
        notes=tuple(Note(e.at, e.what, e.said) for e in entries if e.what not in _KNOWN),
        returncode=next((e.data.get("returncode") for e in entries if e.what == "exited"), None),
    )


_KNOWN = frozenset({"state", "log", "launch", "plan", "serving", "exited", "diagnosis", "step"})


def _stay(states: list[Entry], place: int, next_at: float | None) -> Stay:
    """An ended engine's last state lasts until nothing: what follows is another start."""
    entry = states[place]
    until = states[place + 1].at if place + 1 < len(states) else None
    if until is None and next_at is not None and entry.state not in ENDS:
        until = next_at  # its supervisor died without a word
    return Stay(entry.state, entry.at, max(0.0, until - entry.at) if until is not None else None, entry.said)


def _found(entry: Entry) -> Found:
    return Found(entry.at, entry.said if entry.reason else None, entry.data)


def _change(entry: Entry) -> Change:
    data = entry.data
    return Change(entry.at, str(data.get("flag", "")), data.get("before"), data.get("after"), entry.said)
