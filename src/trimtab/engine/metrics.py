"""Prometheus text -> samples -> what vLLM says about itself, under each version's names; read, not fetched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import isfinite

import msgspec

from trimtab.engine import metric_names as names

_LINE = re.compile(r"([a-zA-Z_:][\w:]*)\s*(\{.*\})?\s+(\S+)(?:\s+-?\d+)?")
_LABEL = re.compile(r'([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_TRUE_CHARACTER = {"n": "\n", "\\": "\\", '"': '"'}


class Sample(msgspec.Struct, frozen=True):
    """One line of a Prometheus exposition."""

    name: str
    labels: Mapping[str, str]
    value: float


class EngineMetrics(msgspec.Struct, frozen=True):
    """vLLM's own numbers, summed over its engines; None where this version does not say."""

    preemptions: int | None = None
    finished: int | None = None
    failed: int | None = None  # requests that ended with finished_reason `error` (0.16 and later)
    running: int | None = None
    waiting: int | None = None
    kv_usage: float | None = None  # 0 to 1, the fullest engine
    started_at_s: float | None = None  # of the API server's process
    memory_utilization: float | None = None
    kv_blocks: int | None = None  # of one engine
    kv_tokens: int | None = None  # of one engine
    block_tokens: int | None = None


def read_samples(text: str) -> list[Sample]:
    """The samples in Prometheus text; lines that are no samples (comments, a web page) are passed over."""
    found: list[Sample] = []
    for line in text.splitlines():
        match = None if line.startswith("#") else _LINE.fullmatch(line.strip())
        if match is None:
            continue
        try:
            value = float(match[3])
        except ValueError:
            continue
        found.append(Sample(match[1], {k: _unescaped(v) for k, v in _LABEL.findall(match[2] or "")}, value))
    return found


def read_engine(samples: Iterable[Sample]) -> EngineMetrics | None:
    """vLLM's numbers in `samples`; None when they are not vLLM's (another server, or `--disable-log-stats`)."""
    samples = list(samples)
    if not any(s.name.startswith("vllm:") for s in samples):
        return None
    samples = [s for s in samples if isfinite(s.value)]
    cache = next((s.labels for s in samples if s.name == names.CACHE_CONFIG), {})
    blocks, block_tokens = _integer(cache.get("num_gpu_blocks")), _integer(cache.get("block_size"))
    tokens = _integer(cache.get("kv_cache_size_tokens"))
    if tokens is None and blocks is not None and block_tokens is not None:
        tokens = blocks * block_tokens
    return EngineMetrics(
        preemptions=_total(samples, names.PREEMPTIONS),
        finished=_total(samples, names.FINISHED),
        failed=_total(samples, names.FINISHED, finished_reason="error"),
        running=_total(samples, names.RUNNING),
        waiting=_total(samples, names.WAITING),
        kv_usage=max((s.value for s in samples if s.name in names.KV_USAGE), default=None),
        started_at_s=next((s.value for s in samples if s.name in names.STARTED), None),
        memory_utilization=_number(cache.get("gpu_memory_utilization")),
        kv_blocks=blocks,
        kv_tokens=tokens,
        block_tokens=block_tokens,
    )


def _total(samples: list[Sample], wanted_names: tuple[str, ...], **labels: str) -> int | None:
    wanted = labels.items()
    values = [s.value for s in samples if s.name in wanted_names and all(s.labels.get(k) == v for k, v in wanted)]
    return round(sum(values)) if values else None


def _unescaped(value: str) -> str:
    return _ESCAPED.sub(lambda match: _TRUE_CHARACTER.get(match[1], match[0]), value)


def _integer(value: str | None) -> int | None:
    return int(value) if value is not None and value.isdecimal() and int(value) > 0 else None


def _number(value: str | None) -> float | None:
    try:
        return float(value) if value is not None else None
    except ValueError:
        return None
