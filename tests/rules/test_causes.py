"""The closed list of causes, and the cause of each public failure, which were written before any rule of the doctor."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from trimtab.rules import causes, registry
from trimtab.rules.causes import Cause
from trimtab.rules.doctor import FALLBACK
from trimtab.rules.rule import Subject

JUDGED = Path(__file__).parents[2] / "benchmarks" / "data" / "causes.jsonl"
RECORDS, CONFIRMED = 158, 74
"""Of the published records, those that print their own wording (no tag sig-inferred, none no-error-line)."""
IDS_SHA256 = "d8c8ac8e1137f7464cf46cc3b3d3b01614712ee6b0dad1b1b774f5576900ea49"
"""Of the lines "ID true" or "ID false" (fix confirmed), as the file of records gives them; it is not shipped here."""


@pytest.fixture(scope="module")
def judged() -> list[dict[str, Any]]:
    return [json.loads(line) for line in JUDGED.read_text(encoding="utf-8").splitlines()]


def test_the_list_is_long_enough_and_named_alike() -> None:
    assert len(Cause) >= 60
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", cause) for cause in Cause)
    assert all(cause.name == cause.value.replace("-", "_").upper() for cause in Cause)


def test_each_cause_says_what_it_is() -> None:
    lines = Path(causes.__file__).read_text(encoding="utf-8").splitlines()
    told = [before for before, line in pairwise(lines) if re.match(r'    [A-Z0-9_]+ = "', line)]
    assert len(told) == len(Cause)
    assert all(line.startswith("    # ") for line in told)
    assert len(set(told)) == len(told)


def test_every_record_that_counts_is_there_once(judged: list[dict[str, Any]]) -> None:
    assert max(Counter(row["id"] for row in judged).values()) == 1
    assert (len(judged), sum(row["confirmed"] for row in judged)) == (RECORDS, CONFIRMED)
    ids = "\n".join(f"{row['id']} {json.dumps(row['confirmed'])}" for row in judged)
    assert hashlib.sha256(ids.encode()).hexdigest() == IDS_SHA256


def test_every_cause_given_is_of_the_list(judged: list[dict[str, Any]]) -> None:
    known = {cause.value for cause in Cause}
    for row in judged:
        assert row.keys() - {"also"} == {"id", "cause", "confirmed"}
        given = [row["cause"], *row.get("also", [])]
        assert set(given) <= known, row
        assert len(set(given)) == len(given) <= 2


def test_every_rule_of_the_doctor_declares_a_cause() -> None:
    rules = [rule for subject in (Subject.LOG, Subject.CLIENT) for rule in registry.rules(subject)]
    assert {rule.name for rule in rules if rule.cause is None} == {FALLBACK, "client-not-served"}
