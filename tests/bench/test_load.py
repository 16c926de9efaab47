"""Arrivals, lengths and traces: the same for the same seed, and what is no length or no trace is refused by name."""

from __future__ import annotations

from itertools import islice, pairwise

import pytest

from trimtab.bench.load import Load, Shape, Wanted, draw, read_lengths, read_trace
from trimtab.errors import UsageError

SHAPE = Shape(read_lengths("100:200"), read_lengths("lognormal:50:0.5"), prefixes=3, turns=2)


def taken(load: Load, seed: int, count: int = 2000) -> list[Wanted]:
    return list(islice(draw(SHAPE, load, seed), count))


def test_a_seed_gives_the_same_requests_and_another_seed_others() -> None:
    assert taken(Load(rate=5), 7) == taken(Load(rate=5), 7)
    assert taken(Load(rate=5), 7) != taken(Load(rate=5), 8)


def test_lengths_keep_their_bounds_and_their_median() -> None:
    wanted = taken(Load(), 1)
    assert {min(w.input_tokens for w in wanted), max(w.input_tokens for w in wanted)} == {100, 200}
    outputs = sorted(w.output_tokens for w in wanted)
    assert 47 <= outputs[1000] <= 53
    assert {w.prefix for w in wanted} == {0, 1, 2}


def test_poisson_arrivals_have_their_rate_and_are_uneven() -> None:
    wanted = taken(Load(rate=20.0), 3)
    times = [w.at_s or 0.0 for w in wanted]
    gaps = [b - a for a, b in pairwise(times)]
    assert times[0] == 0.0
    assert sum(gaps) / len(gaps) == pytest.approx(1 / 20, rel=0.1)
    assert sum(g > 2 / 20 for g in gaps) / len(gaps) == pytest.approx(0.135, abs=0.03)  # exp(-2)


def test_constant_arrivals_are_even() -> None:
    gaps = [b - a for a, b in pairwise([w.at_s or 0.0 for w in taken(Load(rate=4.0, arrivals="constant"), 3)])]
    assert set(gaps) == {0.25}


def test_turns_belong_to_one_conversation() -> None:
    assert [(w.conversation, w.turn) for w in taken(Load(), 1, 4)] == [(0, 0), (0, 1), (1, 0), (1, 1)]


@pytest.mark.parametrize(
    "text", ["", "0", "-5", "a", "5:4", "1:2:3", "lognormal:0:1", "lognormal:9:9", "normal:5:1", "1e3"]
)
def test_what_is_no_length_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no length in tokens"):
        read_lengths(text)


def test_a_trace_is_read_in_order_of_time_whichever_names_it_uses() -> None:
    text = b'{"timestamp": 4000, "input_length": 10, "output_length": 3}\n\n{"at": 1.5, "prompt": "Hello"}\n'
    found = read_trace(text, read_lengths("7"), 0)
    assert [(w.id, w.at_s, w.input_tokens, w.output_tokens, w.text) for w in found] == [
        (0, 0.0, 0, 7, "Hello"),
        (1, 2.5, 10, 3, None),
    ]


BAD_TRACES = {
    "empty": (b"\n", "no request"),
    "no JSON": (b"a,b", "line 1"),
    "no prompt": (b'{"at": 1}', "line 1"),
    "time below zero": (b'{"at": 1, "prompt": "a"}\n{"at": -1, "prompt": "a"}', "line 2"),
    "some without time": (b'{"at": 1, "prompt": "a"}\n{"prompt": "a"}', "some have none"),
}


@pytest.mark.parametrize(("text", "words"), BAD_TRACES.values(), ids=BAD_TRACES)
def test_a_bad_trace_is_refused_with_its_line(text: bytes, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_trace(text, read_lengths("7"), 0)
