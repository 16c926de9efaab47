"""Which flags of this vLLM are worth a try for a plan and a load, and with which values. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from trimtab.bench.tuning.objective import Objective
from trimtab.bench.tuning.space import Knob, Space, Value
from trimtab.engine.flags import FlagTable
from trimtab.errors import UsageError
from trimtab.messages import Message, msg

BATCHES = (512, 1024, 2048, 4096, 8192, 16384, 32768)
"""--max-num-batched-tokens; 32,768 is what the launch commands that go round ask for."""
WIDEST = 8  # a ladder of sizes goes from an eighth of the plan's value to WIDER times it
WIDER = 4
CORES_PER_SERVER = 4
"""Cores that one API server may have for itself before another is tried: it tokenises, and writes every stream."""
SERVED_AT_ONCE = 32
"""Requests at once below which one API server is never what limits."""


class Setting(msgspec.Struct, frozen=True):
    """What decides about the knobs beside the version. `values`: flag -> value of the plan's command."""

    values: Mapping[str, Value]
    objective: Objective
    concurrency: int
    on_cpu: bool
    cores: int
    pinned: frozenset[str] = frozenset()
    lossy: bool = False  # an fp8 cache may be tried


_Choose = Callable[[FlagTable, Setting], Knob | Message]
"""A Message says why the flag is no knob here."""


class Untried(msgspec.Struct, frozen=True):
    """A flag that is no knob, and why."""

    flag: str
    reason: Message


class Knobs(msgspec.Struct, frozen=True):
    """The space, and what was left out of it."""

    space: Space
    untried: tuple[Untried, ...]


def knobs(table: FlagTable, setting: Setting) -> Knobs:
    """The space around a plan. UsageError where nothing is left to be changed."""
    found: list[Knob] = []
    left: list[Untried] = []
    for flag, choose in _order(setting.objective).items():
        if table.find(f"--{flag}") is None:
            left.append(Untried(flag, msg("vLLM {version} does not have it", version=table.version)))
            continue
        if flag in setting.pinned:
            left.append(Untried(flag, msg("set by you")))
            continue
        made = choose(table, setting)
        if isinstance(made, Message):
            left.append(Untried(flag, made))
        else:
            found.append(made)
    return Knobs(_space(found, setting), tuple(left))


def knobs_named(table: FlagTable, setting: Setting, texts: Sequence[str]) -> Knobs:
    """The space of `--try` ("max-num-seqs=4,8,16"; "off" leaves a flag out). UsageError for what this vLLM lacks."""
    found: list[Knob] = []
    for text in texts:
        name, _, listed = text.partition("=")
        flag = name.strip().lstrip("-").replace("_", "-")
        spec = table.find(f"--{flag}")
        if spec is None:
            near = ", ".join(table.nearest(f"--{flag}"))
            raise UsageError(
                msg("vLLM {version} has no flag {flag}", version=table.version, flag=f"--{flag}"),
                hint=msg("Did you mean {near}?", near=near) if near else msg("trimtab flags lists what it takes."),
            )
        if flag in setting.pinned:
            raise UsageError(
                msg("--{flag} is pinned, and --try names it", flag=flag), hint=msg("Leave out one of the two.")
            )
        values = [_value(word.strip()) for word in listed.split(",") if word.strip()]
        values = list(dict.fromkeys([*values, setting.values.get(flag)]))
        if len(values) < 2 or any(knob.flag == flag for knob in found):
            raise UsageError(
                msg("{text!r} names no values to try", text=text),
                hint=msg("Write --try max-num-seqs=4,8,16, each flag once; off leaves a flag out."),
            )
        numbers = [v for v in values if v is not None and v.isdigit()]
        ordered = len(numbers) == len(values)
        if ordered:
            values.sort(key=lambda v: int(v or 0))
        found.append(Knob(flag, tuple(values), ordered, setting.objective == "throughput"))
    return Knobs(_space(found, setting), ())


def _value(word: str) -> Value:
    return {"off": None, "on": "true"}.get(word.lower(), word)


def _space(found: Sequence[Knob], setting: Setting) -> Space:
    if not found:
        raise UsageError(
            msg("there is nothing to tune: every flag that could be changed is pinned"),
            hint=msg("Leave out some of the flags after --, or name what to try: --try max-num-seqs=4,8,16."),
        )
    return Space(tuple(found), tuple(knob.values.index(setting.values.get(knob.flag)) for knob in found))


def _order(objective: Objective) -> dict[str, _Choose]:
    """The knobs, the most telling first: for throughput what feeds the engine, else what a token waits for."""
    feed: dict[str, _Choose] = {
        "max-num-seqs": _seqs, "api-server-count": _servers, "max-num-batched-tokens": _batch,
    }  # fmt: skip
    wait: dict[str, _Choose] = {
        "max-num-batched-tokens": _batch, "max-num-seqs": _seqs, "api-server-count": _servers,
    }  # fmt: skip
    rest: dict[str, _Choose] = {
        "async-scheduling": _async, "enforce-eager": _eager, "performance-mode": _mode,
        "enable-chunked-prefill": _chunked, "kv-cache-dtype": _cache_dtype, "block-size": _block,
        "gpu-memory-utilization": _utilization, "enable-prefix-caching": _prefix,
    }  # fmt: skip
    return {**(feed if objective == "throughput" else wait), **rest}


def _seqs(table: FlagTable, setting: Setting) -> Knob | Message:
    now = _number(setting, "max-num-seqs")
    if now is None:
        return msg("the plan does not set it")
    values = {now, *(max(1, now // by) for by in (8, 4, 2)), now * 2, now * WIDER}
    return _sizes("max-num-seqs", values, setting)


def _batch(table: FlagTable, setting: Setting) -> Knob | Message:
    now = _number(setting, "max-num-batched-tokens")
    if now is None:
        return msg("the plan does not set it")
    values = {now, *(size for size in BATCHES if now // WIDEST <= size <= now * WIDER)}
    return _sizes("max-num-batched-tokens", values, setting)


def _servers(table: FlagTable, setting: Setting) -> Knob | Message:
    if setting.concurrency < SERVED_AT_ONCE:
        return msg("with {n} requests at once one API server is never what limits", n=setting.concurrency)
    counts = [n for n in (2, 4, 8) if n * CORES_PER_SERVER <= setting.cores]
    if not counts:
        return msg("this host has {n} cores, and an API server of its own wants {each}", n=setting.cores,
                   each=CORES_PER_SERVER)  # fmt: skip
    return Knob("api-server-count", (setting.values.get("api-server-count"), *(str(n) for n in counts)))


def _async(table: FlagTable, setting: Setting) -> Knob | Message:
    spec = table.find("--async-scheduling")
    other = "true" if spec is not None and spec.default is False else "false"
    return Knob("async-scheduling", (None, other), ordered=False)


def _eager(table: FlagTable, setting: Setting) -> Knob | Message:
    now = setting.values.get("enforce-eager")
    if now is None and setting.objective != "latency":
        return msg("without graphs every step waits for its kernels to be launched: it frees memory, and is no faster")
    return Knob("enforce-eager", (now, None if now else "true"), ordered=False)


def _mode(table: FlagTable, setting: Setting) -> Knob | Message:
    spec = table.find("--performance-mode")
    choices = [str(choice) for choice in spec.choices] if spec is not None else []
    if setting.objective == "throughput":
        return msg("throughput doubles defaults of two flags that the plan sets")
    if setting.on_cpu or "interactivity" not in choices:
        return msg("interactivity changes the graphs of cards")
    return Knob("performance-mode", (None, "interactivity"), ordered=False)


def _chunked(table: FlagTable, setting: Setting) -> Knob | Message:
    now = setting.values.get("enable-chunked-prefill")
    if "V1" in table.engines.split()[:1]:
        return Knob("enable-chunked-prefill", (now, "false"), ordered=False)
    return Knob("enable-chunked-prefill", (now, None if now else "true"), ordered=False)


def _cache_dtype(table: FlagTable, setting: Setting) -> Knob | Message:
    if not setting.lossy:
        return msg("fp8 costs accuracy, which no load measures; --lossy tries it")
    return Knob("kv-cache-dtype", (None, "fp8"), ordered=False)


def _block(table: FlagTable, setting: Setting) -> Knob | Message:
    if setting.on_cpu:
        return msg("the CPU's attention has a size of its own")
    return Knob("block-size", (None, "32", "64"), ordered=False)


def _utilization(table: FlagTable, setting: Setting) -> Knob | Message:
    if setting.on_cpu:
        return msg("the CPU's cache has a size of its own: VLLM_CPU_KVCACHE_SPACE")
    return msg("each trial has the highest that is safe, as the plan")


def _prefix(table: FlagTable, setting: Setting) -> Knob | Message:
    return msg("this load has no prefixes in common")


def _number(setting: Setting, flag: str) -> int | None:
    text = setting.values.get(flag)
    return int(text) if text is not None and text.isdigit() else None


def _sizes(flag: str, values: set[int], setting: Setting) -> Knob:
    return Knob(flag, tuple(str(v) for v in sorted(values)), up=setting.objective == "throughput")
