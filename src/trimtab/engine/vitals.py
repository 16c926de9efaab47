"""One look at /metrics of a vLLM server, in one pass over its bytes: what runs, what waits, what was done so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, isfinite

import msgspec

from trimtab.engine import metric_names as names

Lines = Mapping[bytes, list[tuple[bytes, float]]]  # name -> (labels, value) of each line


def _bytes(*wanted: str) -> tuple[bytes, ...]:
    return tuple(name.encode() for name in wanted)


_RUNNING = _bytes(*names.RUNNING)
_WAITING = _bytes(*names.WAITING)
_KV_USAGE = _bytes(*names.KV_USAGE)
_PREEMPTIONS = _bytes(*names.PREEMPTIONS)
_FINISHED = _bytes(*names.FINISHED)
_GENERATED = _bytes(*names.GENERATED)
_PROMPTED = _bytes(*names.PROMPTED)
_STEPS = _bytes(*names.STEPS)
_HITS = _bytes(*names.HITS)
_QUERIES = _bytes(*names.QUERIES)
_HIT_RATE = _bytes(*names.HIT_RATE)
_PREFILL_S = _bytes(*names.PREFILL_S)
_DECODE_S = _bytes(*names.DECODE_S)
_STARTED = _bytes(*names.STARTED)
_PROMPT_SIZES = names.PROMPT_SIZES.encode()
_CACHE_CONFIG = names.CACHE_CONFIG.encode()

_NAMES = frozenset(
    name
    for group in (_RUNNING, _WAITING, _KV_USAGE, _PREEMPTIONS, _FINISHED, _GENERATED, _PROMPTED, _STEPS, _HITS,
                  _QUERIES, _HIT_RATE, _PREFILL_S, _DECODE_S, _STARTED, (_PROMPT_SIZES, _CACHE_CONFIG))
    for name in group
)  # fmt: skip

# Of V0 and V1; the KV use moves while a long prompt is computed in pieces, before its first token is counted.
_MOVES = (*_GENERATED, *_PROMPTED, *_STEPS, *_KV_USAGE, *_PREEMPTIONS, *_FINISHED)
_WORKING = frozenset((*_RUNNING, *_WAITING, *_MOVES))


class Vitals(msgspec.Struct, frozen=True):
    """Counts since the server's start, summed over its engines; None where this version does not say.

    `kv_usage` is 0 to 1, of the fullest engine; `hit_rate` is V0's own; `prefilled_s` and `decoded_s` are of finished
    requests. `prompts` counts those by the size of their prompt: (at most so many tokens, so many requests or fewer).
    vLLM does not tell the prompts of running requests.
    """

    running: int | None = None
    waiting: int | None = None
    kv_usage: float | None = None
    preemptions: int | None = None
    finished: int | None = None
    generated: int | None = None  # tokens
    prompted: int | None = None  # tokens
    steps: int | None = None
    hits: int | None = None  # prompt tokens found in the prefix cache
    queries: int | None = None  # prompt tokens looked up there
    hit_rate: float | None = None
    prefilled_s: float | None = None
    decoded_s: float | None = None
    prompts: tuple[tuple[float, float], ...] = ()
    kv_tokens: int | None = None  # of one engine
    started_at_s: float | None = None


def read_vitals(body: bytes) -> Vitals | None:
    """What `body` tells; None when it is not vLLM's (another server, or `--disable-log-stats`)."""
    lines = _lines(body, _NAMES)
    running = _sum(lines, _RUNNING)
    if running is None:
        return None
    return Vitals(
        running=running,
        waiting=_sum(lines, _WAITING),
        kv_usage=_first(lines, _KV_USAGE, max),
        preemptions=_sum(lines, _PREEMPTIONS),
        finished=_sum(lines, _FINISHED),
        generated=_sum(lines, _GENERATED),
        prompted=_sum(lines, _PROMPTED),
        steps=_sum(lines, _STEPS),
        hits=_sum(lines, _HITS),
        queries=_sum(lines, _QUERIES),
        hit_rate=_hit_rate(lines),
        prefilled_s=_first(lines, _PREFILL_S, sum),
        decoded_s=_first(lines, _DECODE_S, sum),
        prompts=_sizes(lines.get(_PROMPT_SIZES, [])),
        kv_tokens=_kv_tokens(lines),
        started_at_s=_first(lines, _STARTED, min),
    )


class Progress(msgspec.Struct, frozen=True):
    """What tells whether an engine works: two equal looks mean that nothing moved between them."""

    running: int = 0
    waiting: int = 0
    moves: tuple[float, ...] = ()  # tokens in and out, steps, KV use, requests finished: whatever this version counts


def read_progress(body: bytes) -> Progress | None:
    """Whether the engine behind this /metrics works; None when it counts no requests."""
    lines = _lines(body, _WORKING)
    running = _sum(lines, _RUNNING)
    if running is None:
        return None
    moves = tuple(value for name in _MOVES for _, value in lines.get(name, ()) if isfinite(value))
    return Progress(running, _sum(lines, _WAITING) or 0, moves)


def longest_finished(before: Vitals, after: Vitals) -> int | None:
    """The upper bound of the longest prompt among requests that finished between two looks.

    None when none finished, when this version does not count them, or when it is longer than its largest bucket.
    """
    earlier = dict(before.prompts)
    if not after.prompts or after.prompts[-1][1] <= earlier.get(after.prompts[-1][0], 0.0):
        return None
    grown = after.prompts[-1][1] - earlier.get(after.prompts[-1][0], 0.0)
    bound = next(size for size, count in after.prompts if count - earlier.get(size, 0.0) >= grown)
    return round(bound) if bound != inf else None


def _lines(body: bytes, wanted: frozenset[bytes]) -> Lines:
    """The lines of the `wanted` names, by name. One pass: a large body costs 0.2 us a line."""
    found: dict[bytes, list[tuple[bytes, float]]] = {}
    for line in body.split(b"\n"):
        name = line.partition(b"{")[0] if b"{" in line else line.partition(b" ")[0]
        if name not in wanted:
            continue
        head, _, value = line.rstrip(b"\r ").rpartition(b" ")
        try:
            found.setdefault(name, []).append((head[len(name) :], float(value)))
        except ValueError:
            continue  # a line that is cut off
    return found


def _first(lines: Lines, group: tuple[bytes, ...], combine: Callable[[list[float]], float]) -> float | None:
    """One value of the first of `group` that is there; what is no finite number is as good as absent."""
    values = next(([value for _, value in lines[name]] for name in group if name in lines), None)
    value = combine(values) if values else None
    return value if value is not None and isfinite(value) else None


def _sum(lines: Lines, group: tuple[bytes, ...]) -> int | None:
    found = _first(lines, group, sum)
    return round(found) if found is not None else None


def _hit_rate(lines: Lines) -> float | None:
    rate = _first(lines, _HIT_RATE, max)
    return rate if rate is not None and rate >= 0 else None


def _sizes(buckets: list[tuple[bytes, float]]) -> tuple[tuple[float, float], ...]:
    """Cumulative counts by upper bound, over all engines, in ascending order."""
    found: dict[float, float] = {}
    for labels, count in buckets:
        try:
            bound = float(_label(labels, b"le"))
        except ValueError:
            continue
        found[bound] = found.get(bound, 0.0) + count
    return tuple(sorted(found.items()))


def _kv_tokens(lines: Lines) -> int | None:
    labels = next((labels for labels, _ in lines.get(_CACHE_CONFIG, [])), b"")
    tokens, blocks, size = (
        _label(labels, name) for name in (b"kv_cache_size_tokens", b"num_gpu_blocks", b"block_size")
    )
    if tokens.isdigit() and int(tokens) > 0:
        return int(tokens)
    return int(blocks) * int(size) or None if blocks.isdigit() and size.isdigit() else None


def _label(labels: bytes, name: bytes) -> bytes:
    """The value of a plain label; b"" where there is none. Numbers are never escaped."""
    for start in (b"{", b",", b" "):
        _, found, rest = labels.partition(start + name + b'="')
        if found:
            return rest.partition(b'"')[0]
    return b""
