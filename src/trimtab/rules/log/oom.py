"""An allocation on the card that failed: how much was asked for, and what vLLM was doing. Not a rule.

PyTorch says the same whatever vLLM does; what to change depends on that. It is told by the traceback, else by what the
log said last before it.
"""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec

from trimtab.engine.logs import Entry, EntryKind, Phase
from trimtab.messages import Message, msg
from trimtab.rules.log.context import TROUBLE, Hit, LogContext

OOM = (
    r"(?i:(?:cuda|hip|xpu|cuda driver|cuda runtime)(?: error)?: out of memory|(?:cuda|hip|xpu) out of memory)"
    r"|(?<!ray\.exceptions\.)OutOfMemoryError|cudaErrorMemoryAllocation|Tried to allocate [\d.]+ [KMG]iB"
)
"""torch 1 to 2.11 on CUDA, ROCm and XPU; also the half line that is left when its beginning is cut off."""


class Stage(StrEnum):
    """What vLLM was doing when an allocation failed."""

    LOADING = "loading"
    PROFILE = "profile"
    SAMPLER = "sampler"
    KV_CACHE = "kv_cache"
    CAPTURE = "capture"
    SERVING = "serving"
    UNKNOWN = "unknown"


# Functions of vLLM 0.2 to 0.33 in a traceback, the most telling first.
_FRAMES = (
    (Stage.SAMPLER, re.compile(r"_dummy_sampler_run|_dummy_pooler_run")),
    (Stage.CAPTURE, re.compile(r"capture_model|_capture_cudagraphs?|capture_graph|profile_cudagraph|in capture\b")),
    (Stage.CAPTURE, re.compile(r"/warmup/\w+\.py|kernel_warmup")),
    (Stage.CAPTURE, re.compile(r"in capture_(?:begin|end)\b|with torch\.cuda\.graph\(")),
    (Stage.PROFILE, re.compile(r"profile_run|determine_(?:num_available_blocks|available_memory)|profile_num_avail")),
    (Stage.KV_CACHE, re.compile(r"_allocate_kv_cache|initialize_kv_cache|allocate_gpu_cache|_init_cache_engine")),
    (Stage.CAPTURE, re.compile(r"compile_or_warm_up_model|kernel_warmup|warm_up_model")),
    (Stage.LOADING, re.compile(r"load_model|load_weights|process_weights_after_loading|create_weights|in get_model\b")),
    (Stage.SERVING, re.compile(r"execute_model|run_busy_loop|engine_step")),
)
_METHOD = re.compile(r"while processing method '?(\w+)|Error executing method '?(\w+)")
_PROFILING = re.compile(r"sequence length used for profiling")
"""A warning, and told by nothing but the profile run of a multimodal model."""
_SAID = (
    (Stage.SERVING, re.compile(r"Application startup complete|Uvicorn running|Avg prompt throughput|HTTP/1\.\d\"")),
    (Stage.CAPTURE, re.compile(r"(?i)captur\w+ .*graphs?|CUDA graphs can take|PROFILER_ESTIMATE_CUDAGRAPHS")),
    (Stage.CAPTURE, re.compile(r"# \w+ blocks: |KV cache size: |Available KV cache|Maximum concurrency")),
    (Stage.PROFILE, re.compile(r"[Mm]odel loading took|Loading (?:model )?weights took|profile run|Dynamo bytecode")),
    (Stage.PROFILE, _PROFILING),
    (Stage.LOADING, re.compile(r"Starting to load model|Loading model weights|checkpoint shards|Loading weights")),
)
_WARM_UP = re.compile(r"warming up (?:sampler|pooler)")
_ASKED = re.compile(r"Tried to allocate ([\d.]+) ([KMG])iB")
_FREE = re.compile(r"([\d.]+) ([KMG])iB (?:is )?free")
_TOTAL = re.compile(r"total capac\w+ of ([\d.]+) GiB|; ([\d.]+) GiB total capacity")
_OTHERS = re.compile(r"Process (\d+) has ([\d.]+) GiB memory in use")
_SCALE = {"K": 1 / (1 << 20), "M": 1 / (1 << 10), "G": 1.0}


class Shortage(msgspec.Struct, frozen=True):
    """The first failed allocation of the newest start. None where the line does not tell."""

    hit: Hit
    stage: Stage
    asked_gib: float | None
    free_gib: float | None
    total_gib: float | None
    others_gib: float = 0.0

    @property
    def words(self) -> Message:
        """How much was asked for and how much was there, in a few words."""
        if self.asked_gib is None or self.free_gib is None or self.total_gib is None:
            return msg("an allocation on the card failed", zh="显存分配失败")
        return msg(
            "{asked:.2f} GiB were asked for and {free:.2f} of {total:.1f} GiB were free",
            zh="申请 {asked:.2f} GiB，而 {total:.1f} GiB 中只剩 {free:.2f} GiB",
            asked=self.asked_gib,
            free=self.free_gib,
            total=self.total_gib,
        )

    @property
    def lacking_gib(self) -> float | None:
        """How much more would have been enough for this one allocation."""
        return None if self.asked_gib is None or self.free_gib is None else self.asked_gib - self.free_gib


def shortage(context: LogContext) -> Shortage | None:
    """The failed allocation, of several processes' the first."""
    hits = context.find(OOM, *TROUBLE)
    newest = [h for h in hits if h.entry.line >= context.facts.begin_line]
    if not hits:
        return None
    hit = (newest or hits)[0]
    text = hit.entry.text
    others = sum(float(gib) for _, gib in _OTHERS.findall(text))
    return Shortage(hit, _stage(context, hit.entry), _gib(_ASKED, text), _gib(_FREE, text), _total(text), others)


def _stage(context: LogContext, entry: Entry) -> Stage:
    if _WARM_UP.search(entry.text):
        return Stage.SAMPLER
    for stage, pattern in _FRAMES:
        if any(pattern.search(frame) for frame in entry.frames):
            serving = entry.phase is Phase.SERVING and stage in (Stage.LOADING, Stage.CAPTURE)
            return Stage.SERVING if serving else stage
    for stage, pattern in _FRAMES:
        for other in context.log.of(EntryKind.PLAIN, EntryKind.ERROR, EntryKind.EXCEPTION):
            told = _METHOD.search(other.text)
            if told and pattern.search(told[1] or told[2]):
                return stage
    return stage_before(context, entry.line, inclusive=True)


def stage_before(context: LogContext, line: int, *, inclusive: bool = False) -> Stage:
    """What the log said last of its stages before a line; `inclusive`: or in the lines after it where none before."""
    seen = [e for e in context.last_start if e.kind is not EntryKind.WARNING or _PROFILING.search(e.text)]
    for entry in reversed([e for e in seen if e.line < line]):
        for stage, pattern in _SAID:
            if pattern.search(entry.text):
                return stage
    for entry in seen if inclusive else ():
        for stage, pattern in _SAID:
            if entry.line >= line and pattern.search(entry.text):
                return stage
    return Stage.UNKNOWN


def _gib(pattern: re.Pattern[str], text: str) -> float | None:
    found = pattern.search(text)
    return float(found[1]) * _SCALE[found[2]] if found else None


def _total(text: str) -> float | None:
    found = _TOTAL.search(text)
    return float(found[1] or found[2]) if found else None
