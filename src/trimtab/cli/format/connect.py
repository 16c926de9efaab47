"""What `connect` prints: the clients, a plan with its diff, what was undone, what is wrong; text, or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.cli.format.json import dump
from trimtab.connect.checking import name_of
from trimtab.connect.client import Client, Present, Trouble
from trimtab.connect.undoing import Undone
from trimtab.connect.values import Connection
from trimtab.connect.writing import Planned, diff
from trimtab.messages import Message, msg


def clients_text(clients: Sequence[Client], lang: str) -> str:
    """A line a client: name, title, protocol, the package that its facts were read in."""
    rows = [(c.name, c.title, c.protocol.value, f"{c.package} {c.version}".strip()) for c in clients]
    head = (msg("client"), msg("program"), msg("protocol"), msg("known from"))
    rows.insert(0, (head[0].text(lang), head[1].text(lang), head[2].text(lang), head[3].text(lang)))
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*lines, "", msg("trimtab connect CLIENT shows what it needs.").text(lang)]) + "\n"


def clients_json(clients: Sequence[Client]) -> str:
    """Schema trimtab.clients/1."""
    shown = [
        {"name": c.name, "title": c.title, "protocol": c.protocol, "package": c.package, "version": c.version,
         "writes": c.edits is not None, "checks": c.read is not None, "needed_context_tokens": c.needed_tokens or None}
        for c in clients
    ]  # fmt: skip
    return dump({"schema": "trimtab.clients/1", "clients": shown})


def plan_text(
    client: Client, told: Connection, plans: Sequence[Planned], troubles: Sequence[Trouble], lang: str, *, written: bool
) -> str:
    """The three things, the diff, what to do next, and what will not do."""
    lines = [f"  {name.text(lang)}: {value}" for name, value in _things(client, told, lang)] + [""]
    for plan in plans:
        if plan.changes:
            head = msg("written: {file}", file=plan.file) if written else msg("would change: {file}", file=plan.file)
            lines += [head.text(lang), diff(plan).rstrip("\n")]
        else:
            lines.append(msg("{file} is as it should be", file=plan.file).text(lang))
    if not plans:
        lines.append(client.snippet(told))
    lines += ["", *(f"- {step.text(lang)}" for step in _steps(client, told, plans, written))]
    lines += [line for one in troubles for line in _trouble(one, lang)]
    return "\n".join(lines).rstrip("\n") + "\n"


def plan_json(
    client: Client, told: Connection, plans: Sequence[Planned], troubles: Sequence[Trouble], lang: str, *, written: bool
) -> str:
    """Schema trimtab.connect/1; never the key."""
    return dump(
        {
            "schema": "trimtab.connect/1",
            "client": client.name,
            "base_url": client.base_url(told),
            "key_env": told.key_env if told.needs_key else None,
            "model": told.model,
            "small_model": told.small,
            "context_tokens": told.context_tokens,
            "files": [{"file": str(p.file), "changes": p.changes, "diff": diff(p)} for p in plans],
            "written": written,
            "snippet": client.snippet(told),
            "troubles": [_trouble_value(one, lang) for one in troubles],
        }
    )


def _things(client: Client, told: Connection, lang: str) -> list[tuple[Message, str]]:
    key = f"${told.key_env}" if told.needs_key else msg("the server asks for none").text(lang)
    rows = [(msg("base URL"), client.base_url(told)), (msg("API key"), key), (msg("model id"), told.model)]
    if told.context_tokens is not None:
        rows.append((msg("context"), msg("{count} tokens", count=told.context_tokens).text(lang)))
    return rows


def _steps(client: Client, told: Connection, plans: Sequence[Planned], written: bool) -> list[Message]:
    steps: list[Message] = []
    if any(plan.changes for plan in plans) and not written:
        steps.append(msg("write it: trimtab connect {name} --write", name=client.name))
    if written:
        steps.append(msg("take it back: trimtab connect {name} --undo", name=client.name))
    if told.needs_key and not told.write_key:
        steps.append(msg("set the key where the client runs: export {name}=...", name=told.key_env))
    if told.write_key and told.needs_key:
        steps.append(msg("the key is in the file: keep it out of any repository"))
    return [*steps, *client.notes]


def undone_text(undone: Sequence[Undone], lang: str) -> str:
    """A line a file."""
    return "".join(f"{_HOW[one.how].text(lang)}: {one.file}\n" for one in undone)


_HOW = {
    "restored": msg("as it was before, byte for byte"),
    "removed": msg("removed, as it was not there before"),
    "values": msg("changed since: the values that Trimtab wrote were taken back"),
    "same": msg("was as before already"),
}


def undone_json(undone: Sequence[Undone]) -> str:
    """Schema trimtab.connect-undone/1."""
    return dump({"schema": "trimtab.connect-undone/1", "files": list(undone)})


def check_text(client: Client, found: Present | None, troubles: Sequence[Trouble], lang: str) -> str:
    """What is set, then what is wrong, worst first."""
    lines: list[str] = []
    if found is not None:
        rows = [(msg("set in"), found.place), (msg("base URL"), found.base_url), (msg("model id"), found.model)]
        lines += [f"  {name.text(lang)}: {value}" for name, value in rows if value]
    lines += [line for one in troubles for line in _trouble(one, lang)]
    if not troubles:
        lines.append(msg("nothing is wrong with it").text(lang))
    elif any(one.mends for one in troubles):
        lines.append(msg("  -> mend it: trimtab connect {name} --write", name=client.name).text(lang))
    return "\n".join(lines) + "\n"


def check_json(client: Client, found: Present | None, troubles: Sequence[Trouble], lang: str) -> str:
    """Schema trimtab.connect-check/1; never the key."""
    return dump(
        {
            "schema": "trimtab.connect-check/1",
            "client": client.name,
            "place": found.place if found else None,
            "base_url": found.base_url if found else None,
            "model": found.model if found else None,
            "context_tokens": found.context_tokens if found else None,
            "troubles": [_trouble_value(one, lang) for one in troubles],
        }
    )


def _trouble(one: Trouble, lang: str) -> list[str]:
    place = [f"    {one.place}"] if one.place else []
    return [f"{one.severity} {one.code} {name_of(one.code)}", f"  {one.message.text(lang)}", *place]


def _trouble_value(one: Trouble, lang: str) -> dict[str, Any]:
    return {
        "code": one.code, "name": name_of(one.code), "severity": one.severity, "message": one.message.text(lang),
        "place": one.place, "mended_by_write": one.mends,
    }  # fmt: skip
