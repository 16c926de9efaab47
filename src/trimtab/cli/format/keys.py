"""Keys, plans, usage and providers as tables and JSON: schemas `trimtab.keys/1`, key, plans, usage and providers."""

from __future__ import annotations

import io
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from trimtab.gateway.limits import Limits, merged
from trimtab.gateway.store.keys import KeyRecord, Made
from trimtab.gateway.store.plans import Plan
from trimtab.gateway.store.providers import Provider
from trimtab.gateway.store.reports import Used
from trimtab.messages import Message, msg

_WIDTH = 160
_GROUPS = {
    "key": msg("key"),
    "owner": msg("owner"),
    "plan": msg("plan"),
    "model": msg("model"),
    "back_end": msg("back end"),
    "path": msg("path"),
    "status": msg("status"),
    "day": msg("day"),
}


def keys_text(keys: Sequence[KeyRecord], now: float, lang: str) -> str:
    """A row a key; a sentence when there is none."""
    if not keys:
        return msg("there is no key; trimtab keys create makes one").text(lang)
    headings = (msg("id"), msg("key"), msg("label"), msg("owner"), msg("plan"), msg("state"), msg("made"), msg("ends"))
    rows = [
        (k.id, _starts(k), k.label, k.owner, k.plan or "-", _state(k, now).text(lang), _day(k.created), _day(k.expires))
        for k in keys
    ]
    return _table(headings, rows, lang)


def keys_json(keys: Sequence[KeyRecord]) -> str:
    return _json({"schema": "trimtab.keys/1", "keys": [_key(key) for key in keys]})


def key_text(key: KeyRecord, plans: Mapping[str, Limits], now: float, lang: str) -> str:
    """What a key is, and the limits in force, each with where it comes from."""
    told = [
        (msg("id"), key.id), (msg("key"), _starts(key)), (msg("label"), key.label or "-"),
        (msg("owner"), key.owner or "-"), (msg("plan"), key.plan or "-"),
        (msg("state"), _state(key, now).text(lang)), (msg("made"), _day(key.created)),
        (msg("ends"), _day(key.expires)), (msg("tags"), ", ".join(f"{n}={v}" for n, v in key.tags.items()) or "-"),
    ]  # fmt: skip
    lines = [f"{name.text(lang)}: {value}" for name, value in told]
    of_plan = plans.get(key.plan or "")
    for name, value in _stated(merged(key.limits, of_plan)):
        own = getattr(key.limits, name) is not None
        lines.append(f"{name}: {value}" + ("" if own else f" ({msg('of the plan').text(lang)})"))
    return "\n".join(lines)


def key_json(key: KeyRecord, plans: Mapping[str, Limits]) -> str:
    """`limits` are the key's own, `in_force` those that hold with its plan's."""
    in_force = msgspec.to_builtins(merged(key.limits, plans.get(key.plan or "")))
    return _json({"schema": "trimtab.key/1", **_key(key), "in_force": in_force})


def made_json(made: Made) -> str:
    return _json({"schema": "trimtab.key/1", **_key(made.key), "text": made.text.reveal()})


def made_note(made: Made) -> Message:
    """What is said beside a new key."""
    former = [text for text in made.key.texts if text.ends is not None]
    if former and former[-1].ends is not None:
        until = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(former[-1].ends))
        return msg("key {id}: shown this once; the former text holds until {until}", id=made.key.id, until=until)
    return msg("key {id}: shown this once, keep it now", id=made.key.id)


def revoked(key: KeyRecord) -> Message:
    return msg("revoked {id} ({label}); gateways refuse it within a second", id=key.id, label=key.label or "-")


def plans_text(plans: Sequence[Plan], lang: str) -> str:
    """A row a plan."""
    rows = [(p.name, str(p.keys), "\n".join(f"{n}={v}" for n, v in _stated(p.limits)) or "-") for p in plans]
    return _table((msg("plan"), msg("keys"), msg("limits")), rows, lang)


def plans_json(plans: Sequence[Plan]) -> str:
    return _json({"schema": "trimtab.plans/1", "plans": [msgspec.to_builtins(plan) for plan in plans]})


def providers_text(providers: Sequence[Provider], lang: str) -> str:
    """A row a provider; never a key."""
    if not providers:
        return msg("no key of a provider is kept").text(lang)
    return _table((msg("provider"), msg("stored")), [(p.name, _day(p.created)) for p in providers], lang)


def providers_json(providers: Sequence[Provider]) -> str:
    return _json({"schema": "trimtab.providers/1", "providers": [msgspec.to_builtins(each) for each in providers]})


def usage_text(found: Sequence[Used], by: Sequence[str], lang: str) -> str:
    """A row a group; money only where there are prices."""
    if not found:
        return msg("nothing was used in that time").text(lang)
    priced = any(used.money for used in found)
    headings = [_GROUPS[name] for name in by]
    headings += [msg("requests"), msg("failed"), msg("prompt"), msg("completion"), msg("cached"), msg("not told")]
    headings += [msg("first byte p50/p95"), msg("whole p50/p95")] + ([msg("money")] if priced else [])
    rows = []
    for used in found:
        row = [_named(used, name) for name in by]
        row += [
            f"{n:,}"
            for n in (
                used.requests,
                used.failed,
                used.prompt_tokens,
                used.completion_tokens,
                used.cached_tokens,
                used.uncounted,
            )
        ]
        row += [_seconds(used.first_byte_p50, used.first_byte_p95), _seconds(used.seconds_p50, used.seconds_p95)]
        rows.append((*row, f"{used.money:,.4f}") if priced else tuple(row))
    return _table(headings, rows, lang)


def usage_json(found: Sequence[Used], by: Sequence[str], since: float, until: float) -> str:
    groups = [msgspec.to_builtins(used) for used in found]
    return _json({"schema": "trimtab.usage/1", "by": list(by), "since": since, "until": until, "groups": groups})


def _named(used: Used, name: str) -> str:
    value = used.group[name] or "-"
    return f"{value} ({used.label})" if name == "key" and used.label else value


def _seconds(middle: float | None, high: float | None) -> str:
    return "-" if middle is None or high is None else f"{middle:.2g}/{high:.2g} s"


def _key(key: KeyRecord) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(key)
    return told


def _starts(key: KeyRecord) -> str:
    return " ".join(f"{text.start}..." for text in key.texts)


def _state(key: KeyRecord, now: float) -> Message:
    if key.revoked is not None:
        return msg("revoked")
    if not key.holds(now):
        return msg("expired")
    return msg("admin") if key.admin else msg("valid")


def _stated(limits: Limits) -> Iterable[tuple[str, str]]:
    for name in Limits.__struct_fields__:
        value = getattr(limits, name)
        if value is not None:
            yield name, ",".join(value) if isinstance(value, tuple) else f"{value:,}"


def _day(moment: float | None) -> str:
    return "-" if moment is None else time.strftime("%Y-%m-%d", time.gmtime(moment))


def _table(headings: Iterable[Message], rows: Iterable[Sequence[str]], lang: str) -> str:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading.text(lang), overflow="fold")
    for row in rows:
        table.add_row(*row)
    out = io.StringIO()
    Console(file=out, width=_WIDTH, highlight=False, color_system=None, markup=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
