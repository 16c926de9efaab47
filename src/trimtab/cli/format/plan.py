"""A plan as text (the command, its memory, one reason per flag) and as JSON, schema `trimtab.plan/1`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.cli.format.budget import MARKS, drawn
from trimtab.cli.format.columns import columns, padded
from trimtab.cli.plan_file import PLAN_SCHEMA
from trimtab.messages import Message, msg
from trimtab.plan.estimate import Estimate
from trimtab.plan.memory.budget import Budget
from trimtab.plan.memory.caches import kv_element_bytes
from trimtab.plan.memory.rank import Rank
from trimtab.plan.planner import Plan


def text(plan: Plan, lang: str, linted: Sequence[Message] = ()) -> str:
    """The answer first: the command when it fits, else that nothing fits and what would."""
    lines: list[str] = []
    if not plan.fits:
        lines += [_does_not_fit(plan, lang), *(reason.text(lang) for reason in plan.reasons)]
        lines += ["", msg("The nearest try:").text(lang), ""]
    lines += [shell(plan.command.argv(), plan.env), "", _made_for(plan, lang), "", *_memory(plan.budget, lang)]
    if plan.fits:
        lines += ["", *_reasons(plan, lang)]
    if plan.alternatives:
        lines += ["", msg("What would fit:").text(lang)]
        for other in plan.alternatives:
            lines += [f"- {other.what.text(lang)}", f"  {msg('cost: {cost}', cost=other.cost).text(lang)}",
                      f"  {shlex.join(other.command.argv())}"]  # fmt: skip
    if plan.fits:
        lines += _beside(plan, lang, linted)
    return "\n".join(lines) + "\n"


def _made_for(plan: Plan, lang: str) -> str:
    return msg(
        "vLLM {version} on {cards} x {card}: {split}; {n} requests of {size:,} tokens at once",
        version=str(plan.budget.settings.version),
        cards=plan.budget.settings.cards_needed,
        card=plan.budget.cards[0].name,
        split=plan.split.text,
        n=plan.wish.concurrency or 1,
        size=plan.wish.request_tokens,
    ).text(lang)


def _beside(plan: Plan, lang: str, linted: Sequence[Message]) -> list[str]:
    """What was considered, given up and estimated; head room and the linter's word last."""
    lines: list[str] = []
    if plan.lost or plan.considered:
        lines += ["", msg("Considered and not taken:").text(lang)]
        lines += [f"- {one.what}: {one.reason.text(lang)} [{one.source}]" for one in (*plan.lost, *plan.considered)]
    if plan.given_up:
        lines += ["", msg("Given up:").text(lang), *(f"- {one.text(lang)}" for one in plan.given_up)]
    if plan.budget.assumptions:
        lines += ["", msg("assumed:").text(lang), *(f"- {one.text(lang)}" for one in plan.budget.assumptions)]
    if plan.estimate is not None:
        lines += ["", *(line.text(lang) for line in estimate_lines(plan.estimate))]
    return [*lines, "", *(r.text(lang) for r in plan.reasons), *(one.text(lang) for one in linted)]


def estimate_lines(told: Estimate) -> list[Message]:
    """The estimate in words, each bound with its unit; which figure no source tells."""
    head = msg(
        "Estimate, no promise: {n} at once, {given:,} tokens in, {made:,} out",
        n=told.concurrency,
        given=told.input_tokens,
        made=told.output_tokens,
    )
    rows = [
        (msg("first token of one prompt"), told.first_token_s, 1.0, msg("s")),
        (msg("between two tokens"), told.token_s, 1000.0, msg("ms")),
        (msg("the same while one longest prompt is prefilled"), told.stall_s, 1000.0, msg("ms")),
        (msg("all requests together"), told.output_tokens_s, 1.0, msg("tokens/s")),
    ]
    lines = [head]
    lines += [
        msg("- {what}: {low} to {high} {unit}", what=what, low=_figure(span.low * by), high=_figure(span.high * by),
            unit=unit)
        for what, span, by, unit in rows
        if span is not None
    ]  # fmt: skip
    lines += [msg("- no source for {what} of this card", what=", ".join(told.missing))] if told.missing else []
    return lines


def _figure(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _reasons(plan: Plan, lang: str) -> list[str]:
    flags = [f"{w.flag} {w.value}".strip() for w in plan.why]
    width = max(map(len, flags), default=0)
    rows = zip(flags, plan.why, strict=True)
    return [f"{flag:{width}}  {why.reason.text(lang)} [{why.source}]" for flag, why in rows]


def value(plan: Plan, lang: str, budget: Mapping[str, Any], findings: Sequence[Any] = ()) -> dict[str, Any]:
    """The same as data; `budget` in the budget's schema, `findings` the linter's on the plan's own command."""
    return {
        "schema": PLAN_SCHEMA,
        "command": plan.command.argv(),
        "env": dict(plan.env),
        "fits": plan.fits,
        "budget": budget,
        "why": [
            {"flag": w.flag, "value": w.value, "reason": w.reason.text(lang), "source": w.source} for w in plan.why
        ],
        "alternatives": [
            {
                "what": a.what.text(lang),
                "cost": a.cost.text(lang),
                "command": a.command.argv(),
                "verdict": a.budget.verdict,
            }
            for a in plan.alternatives
        ],
        "considered": [
            {"what": one.what, "reason": one.reason.text(lang), "source": one.source}
            for one in (*plan.lost, *plan.considered)
        ],
        "given_up": [one.text(lang) for one in plan.given_up],
        "headroom": _headroom(plan),
        "estimate": _estimate(plan.estimate),
        "verdict": plan.verdict,
        "reasons": [one.text(lang) for one in plan.reasons],
        "findings": list(findings),
    }


def _headroom(plan: Plan) -> dict[str, float] | None:
    """GiB free at the peak on the tightest rank, and what of it is needed for what."""
    kept = plan.reserve
    if kept is None:
        return None
    free = min(rank.headroom.value for rank in plan.budget.ranks)
    terms = {
        "free_gib": free,
        "needed_gib": kept.total,
        "penalties_gib": kept.penalties,
        "graphs_gib": kept.graphs,
        "fragmentation_gib": kept.fragmentation,
        "model_error_gib": kept.model_error,
        "communication_gib": kept.communication,
        "host_gib": kept.host,
        "other_processes_gib": plan.budget.tightest.card.taken_gib,
    }
    return {name: round(number, 3) for name, number in terms.items()}


def _estimate(told: Estimate | None) -> dict[str, Any] | None:
    if told is None:
        return None
    spans = ("token_s", "stall_s", "first_token_s", "output_tokens_s")
    found = {name: getattr(told, name) for name in spans}
    return {
        "promise": False,
        "concurrency": told.concurrency,
        "input_tokens": told.input_tokens,
        "output_tokens": told.output_tokens,
        **{name: [round(s.low, 5), round(s.high, 5)] if s else None for name, s in found.items()},
        "missing": list(told.missing),
    }


def shell(argv: Sequence[str], env: Mapping[str, str]) -> str:
    """The command as people paste it: variables before it, one flag a line."""
    words = [shlex.quote(word) for word in argv]
    lines = [" ".join([*(f"{k}={shlex.quote(v)}" for k, v in env.items()), *words[:3]])]
    for word in words[3:]:
        if word.startswith("-"):
            lines.append(f"  {word}")
        else:
            lines[-1] += f" {word}"
    return " \\\n".join(lines)


def _memory(budget: Budget, lang: str) -> list[str]:
    """The tightest rank's memory as a bar and, below it, a row for each mark with its size."""
    rank, held = budget.tightest, budget.capacity
    on_cpu = rank.card.vendor == "cpu"
    beside = rank.context.before.value + rank.context.counted.value
    rows: list[_Row] = [
        (" ", msg("host memory") if on_cpu else msg("card"), rank.card.total_gib,
         None if on_cpu else msg("usable, as the driver reports it")),
        (MARKS[0], msg("weights"), rank.weights.value, _all_weights(budget)),
        (MARKS[1], msg("the engine's process") if on_cpu else msg("CUDA context and libraries"), beside, _others(rank)),
        (MARKS[2], msg("activation peak"), rank.activation.value, None),
        (MARKS[3], msg("CUDA graphs"), rank.graphs.value, None),
        (MARKS[4], msg("KV cache"), max(rank.kv_cache.value, 0.0), _kv(budget)),
        (MARKS[5], msg("free at the peak"), rank.headroom.value, None),
    ]  # fmt: skip
    if on_cpu:
        rows = [*rows[:4], rows[5]]
    many = msg("Memory of the tightest of {n} ranks:", n=len(budget.ranks))
    lines = [(many if len(budget.ranks) > 1 else msg("Memory:")).text(lang)]
    lines += [f"  {line}" for line in drawn(budget, lang)] if budget.known else []
    width = max(columns(name.text(lang)) for _, name, _, _ in rows)
    for mark, name, gib, note in rows:
        lines.append(
            f"  {mark} {padded(name.text(lang), width)}  {gib:7.2f} GiB  {note.text(lang) if note else ''}".rstrip()
        )
    holds = msg(
        "holds {tokens:,} tokens: {n:.1f} requests of {length:,}",
        tokens=held.kv_cache_tokens,
        n=held.max_concurrency,
        length=budget.settings.max_model_len,
    )
    return [*lines, f"  {holds.text(lang)}"]


_Row = tuple[str, Message, float, Message | None]


def _others(rank: Rank) -> Message | None:
    """What other processes hold of the card, which is part of what is gone before vLLM looks."""
    taken = rank.card.taken_gib
    return msg("of which other processes hold {gib:.2f}", gib=taken) if taken > 0.005 else None


def _all_weights(budget: Budget) -> Message | None:
    if len(budget.ranks) == 1:
        return None
    return msg("of {all:.1f} GiB over {n} ranks", all=budget.model.stored_bytes / 2**30, n=len(budget.ranks))


def _kv(budget: Budget) -> Message:
    elements = budget.model.kv_elements_per_token() * kv_element_bytes(budget.settings)
    return msg(
        "{all:.1f} KiB per token over all layers, {each:.1f} on a rank; {blocks:,} blocks of {size}",
        all=elements / 1024,
        each=budget.kv_bytes_per_token / 1024 / budget.settings.pipeline_parallel_size,
        blocks=budget.capacity.num_blocks,
        size=budget.capacity.block_size,
    )


def _does_not_fit(plan: Plan, lang: str) -> str:
    if plan.verdict == "unknown":
        return msg("Whether this fits cannot be told.").text(lang)
    if plan.refusal is not None:
        return msg("vLLM does not run this on {cards} x {card}.", cards=len(plan.budget.cards),
                   card=plan.budget.cards[0].name).text(lang)  # fmt: skip
    return msg(
        "Does not fit: {n} requests of {context:,} tokens on {cards} x {card}.",
        n=plan.wish.concurrency,
        context=plan.wish.context,
        cards=len(plan.budget.cards),
        card=plan.budget.cards[0].name,
    ).text(lang)
