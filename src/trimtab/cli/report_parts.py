"""The sections of a report, each by itself: one that cannot be made says why, and the others stay."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Callable
from pathlib import Path

import msgspec

from trimtab import __version__
from trimtab.cli.diagnosis import model_of
from trimtab.cli.doctor import case_of
from trimtab.cli.format.before import before_text
from trimtab.cli.format.budget import as_text as budget_text
from trimtab.cli.format.doctor import as_text
from trimtab.cli.format.history import day_and_time, history_text
from trimtab.cli.format.report import Section, listed, quoted
from trimtab.cli.history import before_crash, history_of
from trimtab.cli.keeping import recall
from trimtab.cli.preflight import packages_of
from trimtab.cli.settings import dirs, lang
from trimtab.engine.command import LaunchCommand
from trimtab.engine.registry import ServerRecord, without_secrets
from trimtab.errors import TrimtabError
from trimtab.facts.probe.gpus import read_gpus
from trimtab.facts.probe.host import read_host
from trimtab.messages import Message, msg
from trimtab.rules.doctor import DoctorFacts, diagnose
from trimtab.supervisor import registry
from trimtab.supervisor.history import failed_last
from trimtab.supervisor.journal import PLAN, Entry, read_journal
from trimtab.supervisor.logfile import tail
from trimtab.supervisor.rotation import aside

STARTS, EVENTS = 3, 40
_LINE = 2000  # longer lines of a log are cut
_GIB = 2**30


def parts_of(record: ServerRecord, lines: int) -> list[Section]:
    """All sections, in the order in which a stranger reads: what happened, why, with what, and the evidence."""
    makers: tuple[tuple[Message, Callable[[Message], Section]], ...] = (
        (msg("What happened"), lambda head: _happened(head, record)),
        (msg("Before the last crash"), lambda head: _before(head, record)),
        (msg("Diagnosis"), lambda head: _diagnosis(head, record)),
        (msg("Command"), lambda head: quoted(head, shlex.join(without_secrets(record.argv)), "sh")),
        (msg("Versions"), lambda head: _versions(head, record)),
        (msg("Hardware"), _hardware),
        (msg("Plan"), lambda head: _plan(head, record)),
        (msg("Memory"), lambda head: _memory(head, record)),
        (msg("Last events"), lambda head: _events(head, record)),
        (msg("Last lines of the log"), lambda head: _log(head, record, lines)),
    )
    return [_made(heading, maker) for heading, maker in makers]


def _made(heading: Message, maker: Callable[[Message], Section]) -> Section:
    try:
        return maker(heading)
    except TrimtabError as error:
        return _told(heading, msg("not known: {reason}", reason=error.message))
    except OSError as error:
        return _told(heading, msg("not known: {reason}", reason=error.strerror or type(error).__name__))


def _told(heading: Message, text: Message) -> Section:
    return Section(heading, ((text.text(lang()), None),))


def _happened(heading: Message, record: ServerRecord) -> Section:
    return quoted(heading, history_text(msgspec.structs.replace(history_of(record, STARTS), before={}), lang()))


def _before(heading: Message, record: ServerRecord) -> Section:
    starts = history_of(record, STARTS).starts
    found = next((b for start in reversed(starts) if (b := before_crash(record.name, start)) is not None), None)
    if found is None:
        return _told(heading, msg("none of the last starts crashed in service"))
    return Section(heading, ((found.sentence.text(lang()), None), ("\n".join(before_text(found, lang())), "")))


def _diagnosis(heading: Message, record: ServerRecord) -> Section:
    """As `trimtab doctor NAME` says it: of the newest start, or of the one that failed before it."""
    case = case_of(record, None, DoctorFacts(model_of=model_of))
    return quoted(heading, as_text(diagnose(case.log, case.facts), case.log, case.name, lang(), ended=case.ended))


def _versions(heading: Message, record: ServerRecord) -> Section:
    rows: list[tuple[str, object]] = [
        ("Trimtab", __version__), ("vLLM", record.engine_version), ("Python", platform.python_version()),
        ("system", platform.platform()),
    ]  # fmt: skip
    former = recall(record.name)
    if former is not None:
        engine = former.launch.engine
        packages = packages_of(engine, on_cpu=engine.kind == "cpu")
        cuda = ".".join(map(str, packages.cuda)) if packages.cuda else None
        rows += [
            ("engine", f"{engine.name} ({engine.kind})"), ("engine's Python", packages.python),
            ("torch", packages.torch), ("torch's CUDA", cuda), ("transformers", packages.transformers),
        ]  # fmt: skip
        rows += [(f"environment {name}", value) for name, value in sorted(former.launch.env.items())]
    return listed(heading, rows)


def _hardware(heading: Message) -> Section:
    host, gpus = read_host(), read_gpus()
    rows: list[tuple[str, object]] = [
        ("CPU", f"{host.cpu_model}, {host.cores:g} cores, {' '.join(sorted(host.cpu_features))}"),
        ("memory", _gib(host.memory_total_bytes, host.memory_available_bytes)),
        ("container's limit", f"{host.memory_limit_bytes / _GIB:.1f} GiB" if host.memory_limit_bytes else None),
        ("/dev/shm", f"{host.shm_bytes / _GIB:.1f} GiB" if host.shm_bytes is not None else None),
        ("container", "yes" if host.in_container else "no"),
        ("driver", gpus.driver_version),
        ("driver's CUDA", ".".join(map(str, gpus.cuda_version)) if gpus.cuda_version else None),
        ("GPUs", gpus.reason.text(lang()) if gpus.reason is not None else None),
    ]
    for card in gpus.cards:
        capability = ".".join(map(str, card.compute_capability))
        mig = ", MIG" if card.mig else ""
        told = f"{card.name}, {_gib(card.total_bytes, card.free_bytes)}, capability {capability}{mig}"
        rows.append((f"GPU {card.index}", told))
    return listed(heading, rows)


def _gib(total: int, free: int) -> str:
    return f"{total / _GIB:.1f} GiB, {free / _GIB:.1f} GiB free"


def _plan(heading: Message, record: ServerRecord) -> Section:
    noted = [entry for entry in _journal(record) if entry.what == PLAN]
    if not noted:
        return _told(heading, msg("its command was given, not planned"))
    return Section(heading, ((day_and_time(noted[-1].at), None), (str(noted[-1].data.get("text", "")), "")))


def _memory(heading: Message, record: ServerRecord) -> Section:
    """The budget of the command on this host, as it is now."""
    from trimtab.cli.budget import budget_of

    former = recall(record.name)
    command = former.launch.command if former is not None else LaunchCommand.from_argv(record.argv)
    report = budget_of(
        command, gpu=None if read_gpus().cards else "cpu", vllm=record.engine_version or None, model_config=None
    )
    return quoted(heading, budget_text(report, lang()))


def _events(heading: Message, record: ServerRecord) -> Section:
    return quoted(heading, "\n".join(_event(entry) for entry in _journal(record)[-EVENTS:]))


def _event(entry: Entry) -> str:
    """One line; the long texts of plans and launches stand elsewhere."""
    told = {k: v for k, v in entry.data.items() if not isinstance(v, dict | list) and k != "text"}
    words = (
        day_and_time(entry.at),
        entry.what,
        entry.state,
        entry.said.text(lang()),
        _pairs(told) if entry.what != "launch" else "",
    )
    return "  ".join(word for word in words if word)


def _pairs(told: dict[str, object]) -> str:
    return " ".join(f"{key}={value}" for key, value in told.items())


def _journal(record: ServerRecord) -> list[Entry]:
    return list(read_journal(registry.directory(dirs().state, record.name)))


def _log(heading: Message, record: ServerRecord, lines: int) -> Section:
    """Of the newest start, and of the one before where that failed: its log was set aside when this one began."""
    file = Path(record.log)
    past = history_of(record, STARTS).starts
    failed = failed_last(past)
    former = [aside(file, 1)] if failed is not None and failed is not past[-1] and aside(file, 1).exists() else []
    return Section(heading, tuple(block for one in (*former, file) for block in _end_of(one, lines)))


def _end_of(file: Path, lines: int) -> tuple[tuple[str, str | None], tuple[str, str | None]]:
    found, _ = tail(file, lines)
    shown = found.decode("utf-8", "replace").replace("\r", "\n").splitlines()
    return (file.name, None), ("\n".join(_cut(line) for line in shown if line.strip()), "")


def _cut(line: str) -> str:
    """At a blank, so that no half of a secret is left that nobody knows by its beginning."""
    if len(line) <= _LINE:
        return line
    return line[:_LINE].rpartition(" ")[0] + f" [... {len(line) - _LINE} more]"
