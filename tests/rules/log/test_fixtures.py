"""Real logs: each failure's cause comes first; a log of a server that is well shows no error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trimtab.engine.logs import Phase, read_log
from trimtab.rules.causes import Cause
from trimtab.rules.doctor import diagnose
from trimtab.rules.rule import Severity

LOGS = Path(__file__).parents[2] / "fixtures" / "logs"
ROOMS = ("cpu", "h200-starts", "h200", "h200-ends")
ROWS = [
    {**json.loads(line), "room": room}
    for room in ROOMS
    for line in (LOGS / room / "index.jsonl").read_text().splitlines()
]
ENGINE = "../../engine/logs"
ROWS += [
    {"room": ENGINE, "version": "0.32.0", "kind": f"cpu-0.32-{kind}", "healthy": not cause, "cause": cause}
    for kind, cause in (
        ("eager", ""),
        ("compiled", ""),
        ("absent-model", "model-not-found"),
        ("context-too-long", "context-above-model-limit"),
        ("kv-too-large", "cpu-kv-space-wrong"),
        ("unknown-flag", "flag-unknown"),
    )
]
FAILED = [row for row in ROWS if not row["healthy"]]
WELL = [row for row in ROWS if row["healthy"]]


def name(row: dict[str, str]) -> str:
    return f"{row['room']}/{row['kind']}"


def log_of(row: dict[str, str]) -> bytes:
    return (LOGS / row["room"] / f"{row['kind']}.log").read_bytes()


def ended(row: dict[str, Any]) -> int | None:
    """The signal that ended the server, which who started it knows and the log may not tell."""
    status = row.get("exit_status")
    return status if isinstance(status, int) and status < 0 else None


@pytest.mark.parametrize("row", FAILED, ids=name)
def test_cause_comes_first(row: dict[str, str]) -> None:
    found = diagnose(read_log([log_of(row)], ended(row))).report.findings
    assert [f.rule.cause for f in found[:1]] == [Cause(row["cause"])]


@pytest.mark.parametrize("row", WELL, ids=name)
def test_no_error_where_all_is_well(row: dict[str, str]) -> None:
    found = diagnose(read_log([log_of(row)])).report.findings
    assert not [(f.rule.code, f.evidence) for f in found if f.severity is Severity.ERROR]


@pytest.mark.parametrize("row", [row for row in ROWS if row.get("answer_cause")], ids=name)
def test_what_the_client_was_answered_tells_the_cause(row: dict[str, str]) -> None:
    found = diagnose(read_log([answer.encode() + b"\n" for answer in row["answers"]])).report.findings
    assert [f.rule.cause for f in found[:1]] == [Cause(row["answer_cause"])]


@pytest.mark.parametrize("room", ROOMS)
def test_index_tells_of_every_log(room: str) -> None:
    kinds = {row["kind"] for row in ROWS if row["room"] == room}
    assert kinds == {path.stem for path in (LOGS / room).glob("*.log")}
    for row in [row for row in ROWS if row["room"] == room]:
        assert row["version"]
        assert row["command"]
        assert row["trimmed"]


def test_there_are_enough() -> None:
    assert len({row["kind"] for row in FAILED if row["room"] == "cpu"}) >= 25
    assert len(WELL) >= 60
    assert len({row["version"] for row in WELL}) >= 2


def test_logs_hold_no_path_of_the_machine_they_were_made_on() -> None:
    for row in ROWS:
        assert b"trimtab-failures" not in log_of(row)
        assert b"/site-packages/site-packages" not in log_of(row)


STARTED = [row for row in WELL if row["room"] == "cpu" and row["kind"].startswith("well-") and row["exit_status"] == 0]


@pytest.mark.parametrize("row", STARTED, ids=name)
def test_the_reader_knows_version_phases_and_kv_cache_of_every_version(row: dict[str, str]) -> None:
    log = read_log([log_of(row)])
    assert (log.facts.version or "").startswith(row["version"])
    assert log.facts.served
    assert {"kv_tokens", "context_tokens"} <= set(log.facts.numbers)
    assert {Phase.LOADING, Phase.SERVING} <= {e.phase for e in log.entries}
