"""One frame of `trimtab top`: as text for a screen, and as one line of JSON of schema `trimtab.top/1`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from trimtab.cli.format.columns import columns, padded
from trimtab.cli.format.history import clock
from trimtab.engine.bottleneck import UNTOLD, Look, Rates, Reading, Slots, missing
from trimtab.engine.flight import MemoryUsed
from trimtab.engine.vitals import Vitals
from trimtab.messages import msg

SCHEMA = "trimtab.top/1"
_BAR = 24


class Frame(msgspec.Struct, frozen=True):
    """All that one frame shows."""

    name: str
    url: str
    version: str  # "" where it is not known
    look: Look
    rates: Rates
    reading: Reading
    slots: Slots
    memory: MemoryUsed


def frame_text(frame: Frame, lang: str) -> list[str]:
    """Lines for a screen of 80 columns or more; what the server does not tell is a dash, and named at the end."""
    head = f"{frame.name}  {frame.url}  {frame.version and f'vLLM {frame.version}'}  {clock(frame.look.at)}"
    lines = [" ".join(head.split(" ")).rstrip(), ""]
    rows = list(_rows(frame, lang))
    width = max(columns(label) for label, _ in rows)
    lines += [f"{padded(label, width)}  {value}".rstrip() for label, value in rows]
    if untold := missing(frame.look.vitals):
        lines.append(
            msg("not told by this server: {names}", names=", ".join(UNTOLD[name].text(lang) for name in untold)).text(
                lang
            )
        )
    return [*lines, "", frame.reading.text.text(lang)]


def frame_json(frame: Frame, lang: str) -> str:
    """One object in one line; what is not known is null."""
    seen, rates, memory = frame.look.vitals or Vitals(), frame.rates, frame.memory
    shown: dict[str, Any] = {
        "schema": SCHEMA, "at": frame.look.at, "name": frame.name, "url": frame.url, "version": frame.version or None,
        "running": seen.running, "waiting": seen.waiting, "max_num_seqs": frame.slots.max_num_seqs,
        "kv_usage": seen.kv_usage, "kv_tokens": seen.kv_tokens, "tokens_s": rates.tokens_s,
        "prompt_tokens_s": rates.prompt_tokens_s, "prefix_hit_rate": rates.hit_rate, "preemptions": seen.preemptions,
        "preemptions_in_window": rates.preemptions, "window_s": rates.span_s, "gpu_used_mib": memory.gpu_mib,
        "gpu_total_mib": memory.gpu_total_mib, "host_free_mib": memory.ram_mib,
        "missing": missing(frame.look.vitals),
        "reading": {"kind": frame.reading.kind.value, "text": frame.reading.text.text(lang)},
    }  # fmt: skip
    return msgspec.json.encode(shown).decode()


def _rows(frame: Frame, lang: str) -> Iterator[tuple[str, str]]:
    seen, rates = frame.look.vitals or Vitals(), frame.rates
    slots = f" / {frame.slots.max_num_seqs}" if frame.slots.max_num_seqs is not None else ""
    yield msg("running").text(lang), _count(seen.running) + slots
    yield msg("waiting").text(lang), _count(seen.waiting)
    yield msg("KV full").text(lang), _share(seen.kv_usage)
    yield msg("tokens/s").text(lang), _rate(rates.tokens_s)
    yield msg("prompt tokens/s").text(lang), _rate(rates.prompt_tokens_s)
    yield msg("prefix hits").text(lang), f"{rates.hit_rate:.0%}" if rates.hit_rate is not None else "-"
    yield msg("preemptions").text(lang), _preemptions(seen, rates, lang)
    yield from _memory_rows(frame.memory, lang)


def _preemptions(seen: Vitals, rates: Rates, lang: str) -> str:
    if seen.preemptions is None:
        return "-"
    since = msg("{n} since its start", n=seen.preemptions)
    if rates.preemptions is None:
        return since.text(lang)
    return msg("{n} in {s:.0f} s, {since}", n=rates.preemptions, s=rates.span_s, since=since).text(lang)


def _memory_rows(memory: MemoryUsed, lang: str) -> Iterator[tuple[str, str]]:
    for card, (used, total) in enumerate(_cards(memory)):
        yield f"GPU {card}", f"{_bar(used / total)}  {used / 1024:.1f} / {total / 1024:.1f} GiB"
    if memory.ram_mib is not None:
        yield msg("host free GiB").text(lang), f"{memory.ram_mib / 1024:.1f}"


def _cards(memory: MemoryUsed) -> Sequence[tuple[int, int]]:
    pairs = zip(memory.gpu_mib or (), memory.gpu_total_mib or (), strict=False)
    return [(used, total) for used, total in pairs if total > 0]


def _share(value: float | None) -> str:
    return f"{_bar(value)}  {value:.0%}" if value is not None else "-"


def _bar(share: float) -> str:
    full = round(min(1.0, max(0.0, share)) * _BAR)
    return "#" * full + "." * (_BAR - full)


def _count(value: int | None) -> str:
    return f"{value:,}" if value is not None else "-"


def _rate(value: float | None) -> str:
    return f"{value:,.0f}" if value is not None else "-"
