"""What an engine's log tells: one line as an event, a whole log as a value, the most telling error. Pure."""

from trimtab.engine.logs.events import Kind, LogEvent, Phase, collect, parse_line
from trimtab.engine.logs.log import Access, Entry, EntryKind, Log, LogFacts
from trimtab.engine.logs.reader import read_log
from trimtab.engine.logs.summary import failure_summary

__all__ = [
    "Access",
    "Entry",
    "EntryKind",
    "Kind",
    "Log",
    "LogEvent",
    "LogFacts",
    "Phase",
    "collect",
    "failure_summary",
    "parse_line",
    "read_log",
]
