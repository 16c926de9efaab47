"""What happened to a server, as text and as JSON of schema `trimtab.history/1`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from heapq import merge
from typing import Any

import msgspec

from trimtab.cli.format.before import before_json, before_text
from trimtab.engine.before import Before
from trimtab.engine.registry import ServerRecord
from trimtab.messages import Message, msg
from trimtab.supervisor.history import CRASHES, ENDS, Note, Start, Stay

SCHEMA = "trimtab.history/1"
_NUMBERS: Mapping[str, Message] = {
    "weights_gib": msg("weights GiB"),
    "kv_gib": msg("KV cache GiB"),
    "kv_tokens": msg("KV cache tokens"),
    "graph_gib": msg("CUDA graphs GiB"),
}


class History(msgspec.Struct, frozen=True):
    """One server's past. `before` holds the minutes before the end of each start that crashed, by its number."""

    record: ServerRecord
    starts: tuple[Start, ...]
    before: Mapping[int, Before]
    now: float
    left_out: int = 0  # older starts

    @property
    def crashes(self) -> int:
        return sum(start.end is not None and start.end.state in CRASHES for start in self.starts)


def history_text(history: History, lang: str) -> str:
    """A line that sums up, then each start: its states with time and duration, what was found and what was changed."""
    record = history.record
    lines = [_summary(history).text(lang)]
    if history.left_out:
        lines.append(msg("{n} older starts are not shown (-n)", n=history.left_out).text(lang))
    last_crash = max(history.before, default=0)
    for start in history.starts:
        lines += ["", _heading(start, history.now).text(lang)]
        lines += [f"  {line}" for line in _start_lines(start, history, lang)]
        before = history.before.get(start.number)
        if before is not None:
            lines.append("  " + msg("before: {sentence}", sentence=before.sentence).text(lang))
            table = before_text(before, lang) if start.number == last_crash else []
            lines += [f"    {line}" for line in table]
    if record.reason and not history.starts:
        lines.append(f"  {record.reason}")
    return "\n".join(lines)


def history_json(history: History, lang: str) -> str:
    """Times are seconds since the epoch, durations seconds."""
    shown: dict[str, Any] = {
        "schema": SCHEMA,
        "name": history.record.name,
        "state": history.record.state,
        "served_s": _served(history),
        "crashes": history.crashes,
        "starts": [_start_json(start, history.before.get(start.number), lang) for start in history.starts],
    }
    return msgspec.json.format(msgspec.json.encode(shown), indent=2).decode()


def _start_json(start: Start, before: Before | None, lang: str) -> dict[str, Any]:
    shown: dict[str, Any] = {name: _builtins(getattr(start, name), lang) for name in start.__struct_fields__}
    shown["ready_after_s"] = start.ready_after_s
    shown["before"] = before_json(before, lang) if before is not None else None
    return shown


def _builtins(value: object, lang: str) -> Any:
    """Plain data, with messages as text in `lang`."""
    if isinstance(value, Message):
        return value.text(lang)
    if isinstance(value, tuple):
        return [_builtins(one, lang) for one in value]
    if isinstance(value, msgspec.Struct):
        return {name: _builtins(getattr(value, name), lang) for name in value.__struct_fields__}
    return value


def _served(history: History) -> float:
    return sum(start.served_s(history.now) for start in history.starts)


def _summary(history: History) -> Message:
    return msg(
        "{name}: starts {starts}, ended unasked {crashes}, served {served}; now {state}",
        name=history.record.name,
        starts=len(history.starts) + history.left_out,
        crashes=history.crashes,
        served=duration(_served(history)),
        state=history.record.state,
    )


def _heading(start: Start, now: float) -> Message:
    end, at = start.end, day_and_time(start.at)
    if end is None:
        return msg("start {n}, {at}: began {time} ago", n=start.number, at=at, time=duration(now - start.at))
    lasted = duration(end.at - start.at)
    return msg("start {n}, {at}: {state} after {time}", n=start.number, at=at, state=end.state, time=lasted)


def _start_lines(start: Start, history: History, lang: str) -> Iterator[str]:
    stays: tuple[Stay | Note, ...] = start.stays
    for seen in merge(stays, start.notes, key=lambda seen: seen.at):  # each in its order, also after a clock step
        if isinstance(seen, Note):
            yield f"{clock(seen.at)}  {seen.what:<15} {'':>8}  {seen.text.text(lang)}".rstrip()
            continue
        yield _stay_line(seen, history, lang)
        if seen.state == "ready" and start.numbers:
            yield "            " + "; ".join(_numbers(start, lang))
    if (cause := _cause(start)) is not None:
        yield msg("cause: {cause}", cause=cause).text(lang)
    if start.change is not None:
        change = start.change
        before, after = change.before or "-", change.after or "-"
        yield msg(
            "changed: {flag} from {before} to {after}: {why}",
            flag=change.flag, before=before, after=after, why=change.why,
        ).text(lang)  # fmt: skip


def _cause(start: Start) -> Message | None:
    """What was found, where the state does not say the same already."""
    cause = start.diagnosis.cause if start.diagnosis is not None else None
    return None if cause is None or any(str(cause) == str(stay.reason) for stay in start.stays) else cause


def _stay_line(stay: Stay, history: History, lang: str) -> str:
    seconds = stay.seconds
    if seconds is None and history.record.state == stay.state and stay is history.starts[-1].stays[-1]:
        seconds = max(0.0, history.now - stay.at)
    shown = duration(seconds) if seconds is not None and stay.state not in ENDS else ""
    return f"{clock(stay.at)}  {stay.state:<15} {shown:>8}  {stay.reason.text(lang)}".rstrip()


def _numbers(start: Start, lang: str) -> Iterator[str]:
    for key, label in _NUMBERS.items():
        if key in start.numbers:
            yield f"{label.text(lang)} {start.numbers[key]:,.10g}"


def duration(seconds: float) -> str:
    """In its two largest units, tenths below a minute: 3d4h, 5h12m, 7m8s, 9.1s."""
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours}h"
    return f"{hours}h{minutes}m" if hours else f"{minutes}m{rest}s"


def clock(at: float) -> str:
    """The local time of day."""
    return f"{datetime.fromtimestamp(at, tz=UTC).astimezone():%H:%M:%S}"


def day_and_time(at: float) -> str:
    """Local date and time with the zone."""
    return f"{datetime.fromtimestamp(at, tz=UTC).astimezone():%Y-%m-%d %H:%M:%S %Z}"
