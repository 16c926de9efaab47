"""Starts out of a journal: how long each state lasted, what was found, what was changed, whatever is missing."""

from __future__ import annotations

from trimtab.messages import msg
from trimtab.supervisor.history import Change, Stay, starts
from trimtab.supervisor.journal import Entry


def state(at: float, new: str, previous: str = "", reason: str = "because") -> Entry:
    return Entry(at=at, what="state", state=new, previous=previous, reason=reason)


LIFE = [
    Entry(at=9.0, what="launch", data={"argv": ["vllm"]}),
    state(10.0, "starting"),
    state(12.0, "loading"),
    Entry(at=13.0, what="log", data={"kind": "loaded", "process": "EngineCore", "weights_gib": 14.29}),
    state(20.0, "compiling"),
    Entry(at=21.0, what="log", data={"kind": "kv_tokens", "kv_tokens": 2048}),
    state(30.0, "ready"),
    Entry(at=31.0, what="serving"),
    state(100.0, "degraded", reason="does not answer at /health"),
    Entry(at=220.0, what="signal", reason="does not answer at /health", data={"signal": "SIGKILL"}),
    Entry(at=221.0, what="exited", data={"returncode": -9}),
    Entry(at=222.0, what="diagnosis", reason="the KV cache was too large", data={"errors": ["OOM"]}),
    state(222.0, "crashed", reason="ended by SIGKILL"),
    state(222.0, "stepping_back"),
    Entry(at=222.0, what="step", reason="less KV", data={"flag": "max-num-seqs", "before": "8", "after": "4"}),
    state(230.0, "starting"),
    state(240.0, "ready"),
    state(300.0, "draining"),
    state(301.0, "stopped"),
]


def test_two_starts() -> None:
    first, second = starts(LIFE)
    assert (first.number, first.at, first.ready_after_s, first.returncode) == (1, 10.0, 20.0, -9)
    assert first.stays[0] == Stay("starting", 10.0, 2.0, msg("{line}", line="because"))
    assert [(stay.state, stay.seconds) for stay in first.stays] == [
        ("starting", 2.0), ("loading", 8.0), ("compiling", 10.0), ("ready", 70.0), ("degraded", 122.0),
        ("crashed", 0.0), ("stepping_back", 8.0),
    ]  # fmt: skip
    assert first.numbers == {"weights_gib": 14.29, "kv_tokens": 2048}
    assert first.end is not None
    assert (first.end.state, first.end.at) == ("crashed", 222.0)
    assert first.diagnosis is not None
    assert str(first.diagnosis.cause) == "the KV cache was too large"
    assert first.change == Change(222.0, "max-num-seqs", "8", "4", msg("{line}", line="less KV"))
    assert [note.what for note in first.notes] == ["signal"]
    assert first.served_s(1000.0) == 192.0
    assert (second.number, second.diagnosis, second.served_s(1000.0)) == (2, None, 60.0)
    assert second.stays[-1].seconds is None


def test_given_up_is_no_start_of_its_own() -> None:
    failed = [state(1.0, "starting"), state(2.0, "failed_to_start"), state(2.5, "given_up", reason="failed again")]
    (only,) = starts(failed)
    assert [stay.state for stay in only.stays] == ["starting", "failed_to_start", "given_up"]
    assert only.end is not None
    assert only.end.state == "failed_to_start"


def test_one_that_still_runs() -> None:
    (only,) = starts([state(10.0, "starting"), state(20.0, "ready")])
    assert only.end is None
    assert only.served_s(50.0) == 30.0


def test_a_supervisor_that_died_without_a_word() -> None:
    first, second = starts([state(10.0, "starting"), state(20.0, "ready"), state(60.0, "starting")])
    assert [stay.seconds for stay in first.stays] == [10.0, 40.0]
    assert first.end is None
    assert second.number == 2


def test_a_claim_that_was_never_started_and_nothing_at_all() -> None:
    (only,) = starts([state(5.0, "failed_to_start", "installing", "no model")])
    assert only.end is not None
    assert only.ready_after_s is None
    assert starts([]) == []
    assert starts([Entry(at=1.0, what="launch")]) == []


def test_a_clock_that_was_set_back_makes_no_time_negative() -> None:
    (only,) = starts([state(100.0, "starting"), state(40.0, "ready"), state(41.0, "crashed")])
    assert [stay.seconds for stay in only.stays] == [0.0, 1.0, None]
    assert only.ready_after_s == 0.0
