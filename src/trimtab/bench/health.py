"""How the engine fared during a verification: its log and its counters before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import httpx2

from trimtab.bench.endpoint import Server
from trimtab.bench.serverlog import Finding, LogReading, LogSource, read_log
from trimtab.engine.metrics import EngineMetrics, read_engine, read_samples
from trimtab.errors import UsageError
from trimtab.messages import Message, msg

# A preempted request loses its KV cache and is computed again. Up to one preemption per finished request the engine
# computes each prompt twice at most; above it, it spends more on repeating than on serving, and load only adds repeats.
STORM_PER_REQUEST = 1.0


@dataclass(frozen=True, slots=True)
class Health:
    """One look: vLLM's numbers, None without /metrics or with another server's; the log, None without one."""

    answers: bool
    engine: EngineMetrics | None
    log: LogReading | None


async def look(client: httpx2.AsyncClient, server: Server, log: LogSource | None) -> Health:
    """Fetch /metrics and read the log. UsageError when the log cannot be read."""
    reading: LogReading | None = None
    if log is not None:
        try:
            reading = read_log(log.read())
        except OSError as error:
            raise UsageError(
                msg("cannot read the log {path}: {reason}", path=log.path, reason=error.strerror or error),
                hint=msg("Pass the file that the server writes with --log."),
            ) from error
    try:
        response = await client.get(f"{server.root}/metrics", timeout=30.0)
    except (httpx2.TransportError, httpx2.DecodingError):
        return Health(False, None, reading)
    engine = read_engine(read_samples(response.text)) if response.status_code == 200 else None
    return Health(True, engine, reading)


def judge_health(before: Health, after: Health) -> tuple[bool | None, Mapping[str, object], tuple[Message, ...]]:
    """No out-of-memory, no dead engine, no preemption storm: verdict, what was measured, evidence."""
    measured: dict[str, object] = {"log_lines": after.log.lines if after.log else None}
    against: list[Message] = []
    if after.log is not None:
        measured |= {"oom_lines": len(after.log.out_of_memory), "dead_lines": len(after.log.engine_dead)}
        against += _lines(msg("out of memory"), after.log.out_of_memory)
        against += _lines(msg("engine death"), after.log.engine_dead)
    if not after.answers:
        against.append(msg("the server no longer answers"))
    if before.engine is not None and after.engine is not None:
        counted, said = _judge_counters(before.engine, after.engine)
        measured |= counted
        against += said
    elif before.engine is not None and after.answers:
        against.append(msg("/metrics no longer answers"))
    if against:
        return False, measured, tuple(against)
    if after.log is None and after.engine is None:
        return None, measured, (msg("no log (--log FILE) and no vLLM counters at /metrics: not judged"),)
    return True, measured, tuple(_nothing_against(after))


def _judge_counters(before: EngineMetrics, after: EngineMetrics) -> tuple[Mapping[str, object], list[Message]]:
    restarted = (after.started_at_s or 0) > (before.started_at_s or 0) or (after.finished or 0) < (before.finished or 0)
    if restarted:
        return {"restarted": True}, [msg("the server restarted meanwhile")]
    preempted, finished = _grown(before.preemptions, after.preemptions), _grown(before.finished, after.finished)
    failed = _grown(before.failed, after.failed)
    measured = {
        "preemptions": preempted,
        "finished": finished,
        "failed": failed,
        "preemptions_since_start": after.preemptions,
        "finished_since_start": after.finished,
    }
    against: list[Message] = []
    if failed:
        against.append(msg("{failed} requests ended with an error in the engine", failed=failed))
    storm = is_storm(preempted, finished)
    if storm:
        against.append(msg("preemption storm: {n} preemptions for {of} requests", n=preempted, of=finished))
    elif is_storm(after.preemptions, after.finished):
        against.append(
            msg(
                "preemption storm since its start: {n} preemptions for {of} requests",
                n=after.preemptions,
                of=after.finished,
            )
        )
    return measured, against


def is_storm(preemptions: int | None, finished: int | None) -> bool:
    """Whether more requests were preempted than `STORM_PER_REQUEST` allows; never when nothing is counted."""
    return preemptions is not None and preemptions > STORM_PER_REQUEST * (finished or 0)


def _grown(before: int | None, after: int | None) -> int | None:
    return None if after is None else after - (before or 0)


def _lines(what: Message, findings: tuple[Finding, ...]) -> list[Message]:
    shown = [msg("{what} in log line {line}: {text}", what=what, line=f.line, text=f.text) for f in findings[:2]]
    if len(findings) > 2:
        shown.append(msg("{what} in {n} more lines", what=what, n=len(findings) - 2))
    return shown


def _nothing_against(after: Health) -> list[Message]:
    said: list[Message] = []
    if after.log is not None:
        said.append(msg("{n} lines of log: no out-of-memory, no engine death", n=after.log.lines))
    if after.engine is None:
        said.append(msg("preemptions not seen: no vLLM counters at /metrics"))
    else:
        said.append(msg("{n} preemptions since its start", n=after.engine.preemptions or 0))
    return said
