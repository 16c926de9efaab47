"""Servers of this host as a table and as JSON: schemas `trimtab.ps/1` and `trimtab.down/1`; log lines as JSON lines."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from trimtab.engine.logs import LogEvent
from trimtab.engine.registry import ServerRecord, public
from trimtab.messages import Message, msg
from trimtab.supervisor.ending import Ended

_WIDTH = 120


def ps_text(records: Sequence[ServerRecord], now: float, lang: str) -> str:
    """A row a server; a sentence when there is none."""
    if not records:
        return msg("no server is running").text(lang)
    table = Table(box=None, padding=(0, 2, 0, 0))
    headings = (msg("name"), msg("state"), msg("model"), msg("base URL"), msg("cards"), msg("process"), msg("age"))
    for heading in headings:
        table.add_column(heading.text(lang), overflow="fold")
    for record in records:
        cards = ",".join(record.devices) or "-"
        models = ",".join(record.models) or "-"
        table.add_row(
            record.name, record.state, models, record.base_url, cards, str(record.pid), age(now - record.created)
        )
    out = io.StringIO()
    Console(file=out, width=_WIDTH, highlight=False, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def ps_json(records: Sequence[ServerRecord], unreadable: Mapping[str, str]) -> str:
    """The records, without their keys; `unreadable` are names of servers of another version, and why."""
    left_out = [{"name": name, "reason": why} for name, why in unreadable.items()]
    shown = {"schema": "trimtab.ps/1", "servers": [public(record) for record in records], "unreadable": left_out}
    return _json(shown)


def age(seconds: float) -> str:
    """A duration in its two largest units: 3d4h, 5h12m, 7m8s, 9s."""
    days, rest = divmod(max(0, int(seconds)), 86400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    if days:
        return f"{days}d{hours}h"
    if hours:
        return f"{hours}h{minutes}m"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


_HOW = {
    "asked": msg("ended as asked"),
    "insisted": msg("ended at the second signal"),
    "killed": msg("had to be killed"),
}


def ended_text(ended: Ended) -> Message:
    return msg(
        "{name} {how} in {seconds:.1f} s; no process is left",
        name=ended.name,
        how=_HOW[ended.how],
        seconds=ended.seconds,
    )


def down_json(ended: Sequence[Ended]) -> str:
    return _json({"schema": "trimtab.down/1", "servers": [msgspec.to_builtins(one) for one in ended]})


def log_json(event: LogEvent) -> str:
    """One log line as one line of JSON."""
    shown: dict[str, Any] = {"kind": event.kind, "level": event.level, "process": event.process, "pid": event.pid}
    return msgspec.json.encode({**shown, "text": event.text, "numbers": dict(event.numbers)}).decode()


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
