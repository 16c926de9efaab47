"""`trimtab doctor`: why a server failed, out of its log; the cause and not the last line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from trimtab.cli import options
from trimtab.cli.diagnosis import chunks, model_of, read_file
from trimtab.cli.named import refuse_address
from trimtab.cli.settings import dirs, lang
from trimtab.engine.command import LaunchCommand
from trimtab.engine.logs import Log, read_log
from trimtab.errors import UsageError
from trimtab.messages import msg
from trimtab.rules import registry as rule_registry
from trimtab.rules.doctor import DoctorFacts, diagnose
from trimtab.rules.rule import Severity, Subject
from trimtab.rules.runner import Selection

if TYPE_CHECKING:
    from trimtab.engine.before import Before
    from trimtab.engine.registry import ServerRecord
    from trimtab.facts.gpu import GpuSet
    from trimtab.supervisor.history import Stay


class Case(msgspec.Struct, frozen=True):
    """A log, its name as it is shown, and what is known beside it."""

    log: Log
    name: str
    facts: DoctorFacts
    before: Before | None = None  # the minutes before its last crash, as the flight recorder saw them
    ended: Stay | None = None  # how it last ended unasked, as its supervisor saw it


def run(
    subject: options.DoctorSubject = None,
    exit_status: options.ExitStatus = None,
    vllm: options.VllmVersion = None,
    gpu: options.Gpu = None,
    select: options.Select = "",
    ignore: options.Ignore = "",
    key: options.Key = None,
    model: options.ServedModel = None,
    timeout: options.RequestBound = 20.0,
    json: options.AsJson = False,
) -> int:
    """Say why a server failed, or what stands between a client and a URL: cause, evidence, fix. Exit code 1: a cause
    was found; 0: healthy."""
    if subject is not None and "://" in subject:
        from trimtab.cli.doctor_endpoint import run_endpoint

        wanted = Selection(_codes(select), _codes(ignore))
        return run_endpoint(subject, key=key, model=model, bound_s=timeout, selection=wanted, json=json)
    case = _case(subject, exit_status, DoctorFacts(vllm=vllm, gpus=_gpus(gpu), model_of=model_of))
    known = [*rule_registry.rules(Subject.LOG), *rule_registry.rules(Subject.CLIENT)] if select or ignore else []
    selection = Selection(_codes(select), _codes(ignore)).checked(known)
    found = diagnose(case.log, case.facts, selection)
    if not found.report.findings and case.ended is None:
        _require_engine(case)
    if json:
        from trimtab.cli.format.doctor import as_json

        print(as_json(found, case.log, case.name, lang(), case.before, case.ended), end="")
    else:
        from trimtab.cli.format.doctor import as_text

        colour = sys.stdout.isatty()
        print(as_text(found, case.log, case.name, lang(), colour=colour, before=case.before, ended=case.ended), end="")
    return int(found.report.worst() is Severity.ERROR or case.ended is not None)


def _require_engine(case: Case) -> None:
    """UsageError where nothing tells of an engine: an empty or a foreign text is not a healthy log."""
    if not case.log.of_an_engine:
        raise UsageError(
            msg("{name}: nothing of vLLM's was found in {lines:,} lines", name=case.name, lines=case.log.lines),
            hint=msg("Name the log that the engine wrote, from its start on: trimtab doctor server.log"),
        )


def _case(subject: str | None, exit_status: int | None, facts: DoctorFacts) -> Case:
    """`-` is standard input; a file is a log; any other word is a server's name, none the newest server."""
    if subject is not None and not subject.strip():
        raise UsageError(
            msg("{word} names no log", word=repr(subject)),
            hint=msg("Name a log file: trimtab doctor server.log; no word at all means this host's newest server."),
        )
    if subject == "-":
        if sys.stdin is None:
            raise UsageError(
                msg("standard input is closed", zh="标准输入已关闭"),
                hint=msg("Name a log file: trimtab doctor server.log", zh="请指定日志文件：trimtab doctor server.log"),
            )
        log = read_log(chunks(sys.stdin.buffer), exit_status)
        return Case(log, "-", facts)
    if subject is not None and not Path(subject).exists():
        refuse_address(subject)
    if subject is not None and ("/" in subject or Path(subject).exists()):
        log = read_file(Path(subject), exit_status)
        return Case(log, subject, facts)
    return _server(subject, exit_status, facts)


def _server(name: str | None, exit_status: int | None, facts: DoctorFacts) -> Case:
    from trimtab.supervisor import registry

    known = registry.records(dirs().state)
    if name is None and not known:
        raise UsageError(
            msg("there is no server"), hint=msg("Name a log file: trimtab doctor server.log, or - for stdin.")
        )
    record = registry.find(dirs().state, name) if name is not None else known[0]
    return case_of(record, exit_status, facts)


def case_of(record: ServerRecord, exit_status: int | None, facts: DoctorFacts) -> Case:
    """A server of this host, with the command and the version that its record tells, and what its journal holds."""
    from trimtab.cli.history import history_of
    from trimtab.supervisor import registry
    from trimtab.supervisor.history import failed_last

    if facts.vllm is None:
        facts = msgspec.structs.replace(facts, vllm=record.engine_version or None)
    facts = msgspec.structs.replace(facts, command=LaunchCommand.from_argv(record.argv))
    past = history_of(record, registry.LOG_FILES)
    if exit_status is None and past.starts and past.starts[-1].ended_by_itself:
        exit_status = past.starts[-1].returncode
    failed = failed_last(past.starts)
    before = past.before.get(failed.number) if failed is not None else None
    ended = failed.end if failed is not None else None
    file = Path(record.log)
    log = read_file(file, exit_status)
    older = _older_failure(file, log, facts)
    if older is None:
        return Case(log, record.name, facts, before, ended)
    both = read_file(file, exit_status, after=older)
    return Case(both, f"{record.name} ({older.name}, {file.name})", facts, before, ended)


def _older_failure(file: Path, log: Log, facts: DoctorFacts) -> Path | None:
    """Where `log` tells no failure, the newest log set aside that does (a former start's, or this one's)."""
    from trimtab.supervisor.rotation import aside

    number = 1
    while (older := aside(file, number)).exists():
        if number == 1 and diagnose(log, facts).cause is not None:
            return None
        if diagnose(read_file(older), facts).cause is not None:
            return older
        number += 1
    return None


def _gpus(spec: str | None) -> GpuSet | None:
    if spec is None:
        return None
    from trimtab.cli.gpus import gpus_named

    return gpus_named(spec, memory_needed=False)


def _codes(words: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in words.split(",") if word.strip())
