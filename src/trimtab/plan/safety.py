"""How much of a card a plan may ask for: what must stay free at the peak, term by term, and the utilization for it."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from trimtab.plan.memory.allocator import GIB, LARGE_SEGMENT
from trimtab.plan.memory.budget import Budget
from trimtab.plan.memory.rank import Rank
from trimtab.plan.memory.verdict import communication_gib

PENALTY_BYTES = 18
"""Bytes for each entry of sequences x vocabulary once a request asks for penalties: counts in 8 bytes and a mask, of
prompt and output (0.33 model_executor/layers/utils.py `get_token_bin_counts_and_mask`)."""
LOGIT_BYTES = 6
"""Beside them: the logits in 16 and in 32 bit. The profile run samples without penalties (`no_penalties=True`)."""
GRAPHS_ERROR = 0.5
"""By how much graphs may exceed the estimate: it is right within a factor of 1.5 from 0.11 on (docs/memory.md)."""
ACTIVATION_ERROR = 0.04
"""The 90th percentile of the activation peak's error in recorded starts is 3.8% (docs/memory.md)."""
WEIGHTS_ERROR = 0.003
"""The same of the weights: 0.3%."""
LIBRARIES_GIB = 0.1
"""What libraries outside PyTorch take differs by driver and build from 0.01 to 0.4 GiB; the memory model reckons with
the middle of 0.04 to 0.22, so about 0.1 more must be expected."""
FRAGMENTS_OF_STEPS = 0.5
"""Of what the widest step takes, the share that PyTorch may hold in blocks which steps of other sizes cannot use:
Qwen2.5-7B, 128 prompts of 1,024 tokens at once in steps of up to 8,192 on an H200 at 0.99 died with 0.49 GiB held so
beside a peak of 1.12 GiB (44%), at 0.98 it lived (vLLM 0.26.0, torch 2.11; benchmarks/data/h200_tuning.jsonl)."""
PARTLY_USED_SEGMENTS = 2
"""Segments of 20 MiB of which PyTorch may use a part only, one each for tensors below 1 and below 10 MiB."""
HOST_SHARE = 0.1
"""Where CPU and GPU share the memory: what the system and vLLM's own processes need of it. Recorded starts on GB10 ask
for 0.5 to 0.9, and at 0.9 one had other processes killed (benchmarks/data/public.jsonl, a055 and a090)."""
LOWEST_UTILIZATION = 0.05


class Reserve(msgspec.Struct, frozen=True):
    """GiB that must stay free on a rank at the peak of the budget."""

    penalties: float
    graphs: float
    fragmentation: float
    model_error: float
    communication: float = 0.0
    host: float = 0.0

    @property
    def total(self) -> float:
        counted = self.penalties + self.graphs + self.fragmentation + self.model_error
        return counted + self.communication + self.host


def reserve(found: Budget, rank: Rank) -> Reserve:
    """What may come on top of a rank's budget: each term for itself."""
    settings = found.settings
    graphs = rank.graphs.value * GRAPHS_ERROR if settings.graphs else 0.0
    error = rank.activation.value * ACTIVATION_ERROR + rank.weights.value * WEIGHTS_ERROR + LIBRARIES_GIB
    shared = rank.card.unified and rank.card.vendor == "nvidia"  # AMD's firmware sets the GPU's share apart
    host = rank.card.total_gib * HOST_SHARE if shared else 0.0
    fragmentation = PARTLY_USED_SEGMENTS * LARGE_SEGMENT / GIB + rank.steps_gib * FRAGMENTS_OF_STEPS
    return Reserve(_penalties(found, rank), graphs, fragmentation, error, communication_gib(settings), host)


def _penalties(found: Budget, rank: Rank) -> float:
    """What a batch with penalties needs beyond the activation peak, which the same memory serves at other times.

    The V2 runner holds its states from the start, and they are in its budget.
    """
    settings = found.settings
    if not rank.stage.last or settings.runner == "v2" or found.model.task != "generate":
        return 0.0
    sampling = settings.max_num_seqs * found.model.vocab_size * (PENALTY_BYTES + LOGIT_BYTES) / GIB
    return max(0.0, sampling - rank.activation.value)


def shortage(found: Budget) -> float:
    """GiB by which the tightest rank falls short of its reserve; 0 or less when nothing is short."""
    return max(reserve(found, rank).total - rank.headroom.value for rank in found.ranks)


def at_safe_utilization(at: Callable[[float], Budget]) -> Budget:
    """The budget at the highest utilization that leaves each rank its reserve and that vLLM's check at start allows.

    `at` makes the budget of a utilization. At 1.0 it tells how much is free at the start and how much short at the
    peak; each hundredth less leaves a hundredth of the card more.
    """
    whole = at(1.0)
    utilization = _free_share(whole)
    if whole.tightest.kv_cache.value <= 0:
        return at(utilization)  # not even the whole card is enough
    utilization = min(utilization, _less(1.0, whole))
    while True:
        found = at(utilization)
        if found.verdict not in ("fits", "unsafe_headroom", "oom_cuda_graph", "free_memory_below_utilization"):
            return found  # less would only leave less
        if found.verdict == "fits" and shortage(found) <= 0:
            return found
        utilization = min(round(utilization - 0.01, 2), _less(utilization, found))
        if utilization < LOWEST_UTILIZATION:
            return found


def _less(utilization: float, found: Budget) -> float:
    """The utilization, in hundredths, that would leave what is short at this one."""
    hundredths = math.ceil(100 * max(0.0, shortage(found)) / found.tightest.card.total_gib - 1e-9)
    return max(LOWEST_UTILIZATION, round(utilization - hundredths / 100, 2))


def _free_share(found: Budget) -> float:
    """The share of the card that is free when vLLM looks, cut to two decimals: no more may be asked for."""
    share = min((r.card.total_gib - r.context.before.value) / r.card.total_gib for r in found.ranks)
    return max(LOWEST_UTILIZATION, math.floor(share * 100 + 1e-9) / 100)
