"""A load against servers that are good, wrong, half dead or lying, over real sockets."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest

from tests.bench.interrupted import interrupted
from tests.fakes.openai_server import Knobs, serving
from trimtab.bench.endpoint import Target
from trimtab.bench.load import Load, Shape, Wanted, read_lengths
from trimtab.bench.measure import Measured, Plan, measure
from trimtab.bench.wire import Bounds
from trimtab.errors import UpstreamError, UsageError

SHAPE = Shape(read_lengths("40"), read_lengths("5"))
BOUNDS = Bounds(connect_s=5, first_s=5, between_s=0.5)


def run(knobs: Knobs, shape: Shape = SHAPE, load: Load | None = None, trace: tuple[Wanted, ...] = ()) -> Measured:
    with serving(knobs) as fake:
        target = Target(fake.base_url, knobs.key)
        return measure(Plan(target, shape, load or Load(4, requests=12), trace=trace, bounds=BOUNDS))


def test_a_good_server_is_measured_with_its_own_counters_beside() -> None:
    found = run(Knobs(key="sk-1"))
    assert (found.summary.finished, found.summary.failed) == (12, {})
    assert found.summary.prompt_tokens == 12 * 40  # by the server's own count
    assert found.summary.completion_tokens == 12 * 5
    assert found.exact_lengths
    assert found.exact_output
    assert found.outcome.notes == {}
    assert found.summary.ttft is not None
    assert found.summary.ttft.count == 12
    assert found.outcome.looks


def test_an_open_loop_sends_at_its_times() -> None:
    found = run(Knobs(), load=Load(rate=40, arrivals="constant", requests=12))
    sent = [r.sent_s for r in found.outcome.rows]
    assert all(at / 40 - 0.01 <= one <= at / 40 + 5 for at, one in enumerate(sent))  # late where the machine is busy
    assert found.outcome.span_s >= 11 / 40
    assert found.summary.late is not None


def test_a_prefix_is_shared_and_the_rest_is_not() -> None:
    with serving(Knobs()) as fake:
        shape = Shape(read_lengths("80"), read_lengths("5"), prefix_tokens=30, prefixes=2)
        found = measure(Plan(Target(fake.base_url), shape, Load(2, requests=8), bounds=BOUNDS))
        texts = [b["messages"][0]["content"] for b in fake.seen.bodies if b.get("stream")]
    assert {r.prompt_tokens for r in found.outcome.rows} == {80}
    assert len({t[: len(t) // 4] for t in texts}) == 2
    assert len(set(texts)) == 8


def test_turns_carry_the_answers_before_them() -> None:
    with serving(Knobs()) as fake:
        shape = Shape(read_lengths("40"), read_lengths("5"), turns=3)
        measure(Plan(Target(fake.base_url), shape, Load(1, requests=3), bounds=BOUNDS))
        roles = [[m["role"] for m in b["messages"]] for b in fake.seen.bodies if b.get("stream")]
    assert roles == [["user"], ["user", "assistant", "user"], ["user", "assistant", "user", "assistant", "user"]]


def test_a_server_without_chat_is_asked_for_completions() -> None:
    assert run(Knobs(chat=False)).summary.finished == 12


def test_a_trace_is_replayed() -> None:
    trace = (Wanted(0, 0, 5, 0.0, text="Hello there"), Wanted(1, 40, 5, 0.05, conversation=1))
    assert run(Knobs(), trace=trace).summary.finished == 2


def test_the_warm_up_takes_no_request_of_a_trace_nor_of_what_was_asked_for() -> None:
    trace = (Wanted(0, 0, 5, 0.0, text="Hello there"), Wanted(1, 40, 5, 0.05, conversation=1))
    with serving(Knobs()) as fake:
        found = measure(Plan(Target(fake.base_url), SHAPE, Load(warmup=2), trace=trace, bounds=BOUNDS))
        texts = [b["messages"][0]["content"] for b in fake.seen.bodies if b.get("stream")]
    assert [row.id for row in found.outcome.rows] == [0, 1]
    assert len(set(texts)) == 4  # nothing that a prefix cache could know
    assert not any(text.startswith("Hello") for text in texts[:2])
    turns = run(Knobs(), Shape(read_lengths("40"), read_lengths("5"), turns=3), Load(2, requests=6, warmup=2))
    assert turns.summary.finished == 6


def test_ctrl_c_while_it_warms_up_ends_it_at_once() -> None:
    with serving(Knobs(hang_streams=True)) as fake:
        words = ["bench", fake.base_url, "--input", "40", "--output", "5", "--json"]
        began = time.monotonic()
        found = json.loads(interrupted(words, fake, 3))  # one that finds the server, then two that hang
        assert time.monotonic() - began < 50  # between two chunks of an answer bench waits 60 s
    assert (found["interrupted"], found["finished"]) == (True, 0)


TROUBLE = {
    "500": (Knobs(fail_streams_above=1), {"error in the stream"}),
    "cut": (Knobs(cut_streams=True), {"stream cut", "connection lost"}),
    "hangs": (Knobs(hang_streams=True), {"timeout between chunks"}),
    "dies": (Knobs(dies_after=6), {"connection refused", "connection lost", "no valid HTTP"}),
}


@pytest.mark.parametrize(("knobs", "kinds"), TROUBLE.values(), ids=TROUBLE)
def test_what_goes_wrong_is_counted_by_its_kind(knobs: Knobs, kinds: set[str]) -> None:
    found = run(knobs)
    assert found.summary.failed
    assert set(found.summary.failed) <= kinds


def test_an_empty_answer_is_no_answer() -> None:
    with pytest.raises(UpstreamError, match="short request"):
        run(Knobs(answer=(), finish_reason=None))


def test_a_server_that_does_not_stream_is_measured_without_a_first_token() -> None:
    found = run(Knobs(streams=False))
    assert found.outcome.notes == {"not streamed": 12}
    assert (found.summary.ttft, found.summary.itl) == (None, None)
    assert found.summary.e2e is not None


@pytest.mark.parametrize(
    ("factor", "note"), [(0.2, "fewer tokens than chunks"), (3.0, "more tokens than asked")], ids=["fewer", "more"]
)
def test_a_usage_that_cannot_be_is_said(factor: float, note: str) -> None:
    assert run(Knobs(usage_factor=factor)).outcome.notes == {note: 12}


def test_completions_that_turn_empty_are_said() -> None:
    found = run(Knobs(empty_after=8))
    assert found.outcome.notes.get("no text", 0) >= 4


def test_a_step_of_the_clock_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    real, began = time.time, time.monotonic()

    def stepping() -> float:
        return real() + (86_400 if int((time.monotonic() - began) * 20) % 2 else -3600)

    monkeypatch.setattr(time, "time", stepping)
    found = run(Knobs(), load=Load(rate=20, arrivals="constant", requests=12))
    assert found.summary.finished == 12
    assert all(0 < (r.e2e_s or 0) < 5 and 0 <= r.sent_s < 5 for r in found.outcome.rows)
    assert all(-5 < look.at < 5 for look in found.outcome.looks)
    assert list(found.outcome.looks) == sorted(found.outcome.looks, key=lambda look: look.at)


def test_without_usage_the_chunks_are_counted_and_that_is_said() -> None:
    found = run(Knobs(usage=False))
    assert found.outcome.notes == {"no usage": 12}
    assert found.summary.uncounted == 12


def test_a_request_longer_than_the_context_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(UsageError, match="longer than the model's context of 512"):
        run(Knobs(), Shape(read_lengths("600"), read_lengths("5")))


def test_a_prompt_too_short_for_its_prefix_is_refused() -> None:
    with pytest.raises(UsageError, match="no room"):
        run(Knobs(), Shape(read_lengths("40"), read_lengths("5"), prefix_tokens=60))


def test_nobody_there_is_one_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(UpstreamError, match=f"127.0.0.1:{port}"):
        measure(Plan(Target(f"http://127.0.0.1:{port}"), SHAPE, Load(), bounds=BOUNDS))


def test_ctrl_c_keeps_what_was_measured_and_marks_it(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    with serving(Knobs()) as fake:
        words = ["bench", fake.base_url, "--duration", "600", "--concurrency", "2", "--input", "40", "--output", "5"]
        said = interrupted([*words, "--rows", str(rows)], fake, 40)
    assert "interrupted" in said
    values = [json.loads(line) for line in rows.read_text().splitlines()]
    assert values[0]["schema"] == "trimtab.bench/1"
    assert values[-1]["interrupted"] is True
    assert values[-1]["finished"] > 0
    assert "sk-" not in rows.read_text()
