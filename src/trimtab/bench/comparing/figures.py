"""A comparison in figures: paired latencies and rates, checks passed, what the judge said. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from trimtab.bench.comparing.difference import likeness
from trimtab.bench.comparing.paired import Paired, paired
from trimtab.bench.comparing.sides import Comparison, Side

MEASURES = ("ttft_s", "tpot_s", "e2e_s", "tokens_s", "completion_tokens")


class Judgement(msgspec.Struct, frozen=True):
    """Of the pairs that were judged. `agreement`: share of those asked and read in which both orders said the same."""

    a: int
    b: int
    ties: int
    malformed: int
    equal: int  # pairs of the same text, ties without asking
    asked: int
    agreement: float | None
    first: float | None  # share of the sides named that stood first: 0.5 where the order counts for nothing


class Figures(msgspec.Struct, frozen=True):
    """What is told of both; `paired` holds only measures that both have. Means of a side are over its whole answers."""

    pairs: int
    asked: int  # of each
    paired: dict[str, Paired]
    equal_texts: int
    likeness: float | None  # mean over the pairs
    failures: tuple[dict[str, int], dict[str, int]]
    checks: tuple[tuple[int, int], tuple[int, int]]  # passed, of how many whole answers to prompts with a check
    costs: tuple[float | None, float | None]
    judgement: Judgement | None


def figures(found: Comparison) -> Figures:
    """The figures; of one side alone the pairs are none."""
    pairs, none = found.pairs, Side("", "", "", ())
    sides = (found.a, found.b or none)
    measured = {}
    for name in MEASURES:
        both = [(x, y) for a, b in pairs if (x := getattr(a, name)) is not None and (y := getattr(b, name)) is not None]
        if (one := paired(both, found.seed)) is not None:
            measured[name] = one
    alike = [likeness(a.text, b.text) for a, b in pairs]
    return Figures(
        len(pairs),
        len(found.prompts) * found.repeats,
        measured,
        sum(a.text == b.text for a, b in pairs),
        sum(alike) / len(alike) if alike else None,
        (_failures(sides[0]), _failures(sides[1])),
        (_checks(found, sides[0]), _checks(found, sides[1])),
        (sides[0].cost, sides[1].cost if found.b is not None else None),
        _judgement(found) if found.judge is not None else None,
    )


def _failures(side: Side) -> dict[str, int]:
    return dict(Counter(reply.trouble for reply in side.replies if reply.trouble is not None))


def _checks(found: Comparison, side: Side) -> tuple[int, int]:
    checked = {prompt.id for prompt in found.prompts if prompt.checked}
    replies = [reply for reply in side.whole if reply.id in checked]
    return sum(not reply.failed for reply in replies), len(replies)


def _judgement(found: Comparison) -> Judgement:
    verdicts = Counter(one.verdict for one in found.judged)
    read = [one for one in found.judged if not one.equal and not one.malformed]
    named: Sequence[bool] = [
        side == first for one in read for side, first in ((one.a_first, "a"), (one.b_first, "b")) if side in ("a", "b")
    ]
    return Judgement(
        verdicts["a"],
        verdicts["b"],
        verdicts["tie"],
        verdicts[None],
        sum(one.equal for one in found.judged),
        sum(not one.equal for one in found.judged),
        sum(one.agreed for one in read) / len(read) if read else None,
        sum(named) / len(named) if named else None,
    )
