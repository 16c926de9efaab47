"""Judge a host before a start: the host rules over one record. The one entry point of `trimtab check` and of `up`."""

from __future__ import annotations

import msgspec

from trimtab.facts.host import HostRecord
from trimtab.rules import registry
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Subject
from trimtab.rules.runner import Report, Selection, run


def preflight(record: HostRecord, selection: Selection | None = None) -> Report:
    """What is wrong with this host for the launch that the record names, worst first."""
    return run(registry.rules(Subject.HOST), HostContext(record), selection)


def recorded(text: str) -> HostRecord:
    """A record from its JSON, as `trimtab check --record` writes it; what is left out was not seen."""
    return msgspec.json.decode(text, type=HostRecord)


def written(record: HostRecord) -> str:
    """The record as JSON, for `recorded`."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2).decode() + "\n"
