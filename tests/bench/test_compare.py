"""Two back ends asked the same, over real sockets: good ones, and each kind of bad one."""

from __future__ import annotations

import socket
import time

import pytest

from tests.fakes.openai_server import Knobs, serving
from trimtab.bench.compare import GIVEN_UP, Live, Plan, compare
from trimtab.bench.comparing.figures import figures
from trimtab.bench.comparing.prompts import Prompt
from trimtab.bench.comparing.sides import Comparison, Price
from trimtab.bench.endpoint import Target
from trimtab.bench.wire import Bounds
from trimtab.errors import UpstreamError

BOUNDS = Bounds(connect_s=5, first_s=5, between_s=0.5)
PROMPTS = tuple(Prompt(f"p{at}", f"Question {at} of some", regex="friend" if at % 2 else None) for at in range(6))


def run(a: Knobs, b: Knobs, prompts: tuple[Prompt, ...] = PROMPTS, **more: int) -> Comparison:
    with serving(a) as one, serving(b) as other:
        sides = [Live(Target(fake.base_url, fake.knobs.key), Price(1.0, 2.0)) for fake in (one, other)]
        return compare(Plan(prompts, sides[0], sides[1], bounds=BOUNDS, **more))


def test_both_answer_and_are_paired() -> None:
    found = run(Knobs(key="sk-a"), Knobs(answer=("Hello", " friend")), repeats=2)
    told = figures(found)
    assert told.pairs == told.asked == 12
    assert told.failures == ({}, {})
    assert told.equal_texts == 0
    assert told.paired["completion_tokens"].b == 2
    assert told.paired["e2e_s"].b < told.paired["e2e_s"].a
    assert told.checks == ((6, 6), (6, 6))
    tokens = sum(reply.prompt_tokens or 0 for reply in found.a.replies)
    assert told.costs[0] == pytest.approx((tokens * 1.0 + 12 * 5 * 2.0) / 1e6)


def test_the_order_is_drawn_from_the_seed_and_both_sides_come_first() -> None:
    one, same, other = (run(Knobs(), Knobs(), repeats=3, seed=seed).order for seed in (1, 1, 2))
    assert one == same != other
    assert len(set(one)) == 18
    assert {text.split()[1] for text in one} == {"ab", "ba"}


def test_conversations_are_sent_as_they_are() -> None:
    talk = Prompt("t", messages=({"role": "system", "content": "Be brief"}, {"role": "user", "content": "Hello"}))
    with serving() as fake:
        compare(Plan((talk,), Live(Target(fake.base_url)), bounds=BOUNDS))
        assert fake.seen.bodies[-1]["messages"] == list(talk.messages)


def test_nobody_there_is_one_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with serving() as fake, pytest.raises(UpstreamError, match=f"127.0.0.1:{port}"):
        compare(Plan(PROMPTS, Live(Target(fake.base_url)), Live(Target(f"http://127.0.0.1:{port}")), bounds=BOUNDS))


@pytest.mark.parametrize(
    ("knobs", "kinds"),
    [
        (Knobs(hang_streams=True), {"timeout between chunks"}),
        (Knobs(cut_streams=True), {"stream cut", "connection lost"}),
        (Knobs(dies_after=1), {"connection lost", "connection refused", "no valid HTTP"}),
    ],
    ids=["hangs", "cuts", "dies"],
)
def test_a_half_dead_server_is_given_up_and_the_other_is_not(knobs: Knobs, kinds: set[str]) -> None:
    found = run(Knobs(), knobs)
    told = figures(found)
    assert told.failures[0] == {}
    assert set(told.failures[1]) <= {*kinds, GIVEN_UP}
    assert told.failures[1][GIVEN_UP] == 3
    assert told.pairs == 0
    assert len(found.a.whole) == 6


def test_a_server_that_does_not_stream_has_no_first_token() -> None:
    found = run(Knobs(streams=False), Knobs())
    assert found.a.notes == {"not streamed": 6}
    assert "ttft_s" not in figures(found).paired
    assert figures(found).paired["e2e_s"].count == 6


@pytest.mark.parametrize(
    ("knobs", "note"),
    [
        (Knobs(usage_factor=0.2), "fewer tokens than chunks"),
        (Knobs(usage_factor=100.0), "more tokens than asked"),
        (Knobs(usage=False), "no usage"),
        (Knobs(empty_after=1), "no text"),
    ],
)
def test_what_does_not_fit_is_counted(knobs: Knobs, note: str) -> None:
    assert run(knobs, Knobs()).a.notes[note] == 6


def test_a_prompt_longer_than_the_context_fails_in_the_servers_words_and_gives_nothing_up() -> None:
    long = tuple(Prompt(f"long{at}", "word " * 600) for at in range(4))
    found = run(Knobs(), Knobs(context=4096), (*long, *PROMPTS))
    kinds = figures(found).failures[0]
    assert sum(kinds.values()) == 4
    assert all(kind.startswith("status 400: This model's maximum context length is 512") for kind in kinds)
    assert figures(found).pairs == 6


def test_a_step_of_the_clock_changes_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    real, began = time.time, time.monotonic()
    monkeypatch.setattr(time, "time", lambda: real() + (86_400 if int((time.monotonic() - began) * 20) % 2 else -3600))
    found = run(Knobs(), Knobs())
    assert all(0 < (reply.e2e_s or 0) < 5 for reply in found.a.replies)


def test_a_judge_is_asked_twice_of_each_pair_and_its_garbling_counted() -> None:
    with serving(Knobs()) as one, serving(Knobs(answer=("Good", " friend"))) as other:
        for answer, malformed, ties in ((('{"winner":', ' "1"}'), 0, 6), (("I", " think"), 6, 0)):
            with serving(Knobs(answer=answer, context=4096)) as arbiter:
                sides = [Live(Target(fake.base_url)) for fake in (one, other)]
                told = figures(
                    compare(Plan(PROMPTS, *sides, judge=Target(arbiter.base_url), repeats=2, bounds=BOUNDS))
                ).judgement
                assert arbiter.seen.generations == 1 + 12
            assert told is not None
            assert (told.malformed, told.ties, told.a, told.b, told.asked) == (malformed, ties, 0, 0, 6)
            assert told.first == (None if malformed else 1.0)  # it always names the first
            assert told.agreement == (None if malformed else 0.0)
