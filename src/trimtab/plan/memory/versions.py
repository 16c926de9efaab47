"""What vLLM's memory accounting does in each release: one named rule per change, each with the file that shows it."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from trimtab.errors import UsageError
from trimtab.messages import msg

PeakRule = Literal["torch", "reserved", "allocated"]


class Release(NamedTuple):
    """A vLLM release; development builds count as the release they lead to or follow."""

    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


OLDEST: Final = Release(0, 2, 0)
NEWEST: Final = Release(0, 33, 0)


def release(text: str) -> Release:
    """ "0.26", "0.19.1rc1.dev71", "v0.8.5.post1", ">=0.20" (as 0.20) -> Release. UsageError when it is no version."""
    found = re.match(r"\s*(?:[>=~]=\s*)?v?(\d+)\.(\d+)(?:\.(\d+))?", text)
    if not found:
        raise UsageError(
            msg("{text} is not a vLLM version", text=repr(text)), hint=msg("Write it like 0.26 or 0.8.5.post1.")
        )
    return Release(int(found[1]), int(found[2]), int(found[3] or 0))


def default_utilization(v: Release) -> float:
    """0.90, from 0.20 on 0.92 (config/cache.py `gpu_memory_utilization`)."""
    return 0.92 if v >= (0, 20) else 0.90


def v1_is_default(v: Release, capability: float) -> bool:
    """V1 from 0.8.0; below capability 8.0 from 0.10.1 (0.9.2 engine/arg_utils.py `_is_v1_supported_oracle`)."""
    if v >= (0, 11):
        return True
    return v >= (0, 8) and (capability >= 8.0 or v >= (0, 10))


def peak_rule(v: Release, engine: str) -> PeakRule:
    """How the peak is read after the profile run.

    torch: `max_memory_allocated` alone (0.2.0 worker/worker.py; non-torch counted from 0.2.4, #2031).
    reserved: total - free with the allocator's cache still held (0.2.5 to 0.5.x worker/worker.py).
    allocated: peak of allocated bytes plus what is not torch's (0.6.x worker/worker.py, v1/worker/gpu_worker.py).
    """
    if engine == "V1" or v >= (0, 6):
        return "allocated"
    return "reserved" if v >= (0, 2, 5) else "torch"


def counts_context(v: Release, engine: str) -> bool:
    """Whether the CUDA context that existed before the engine counts as the engine's.

    It did up to 0.3.x and in 0.6.3-0.6.4 (total - free), and in V1 of 0.8; since then a snapshot taken on the
    fresh device is subtracted (0.4.2 `init_gpu_memory`; utils `memory_profiling` with a baseline).
    """
    if engine == "V1":
        return v < (0, 9)
    return v < (0, 4) or (0, 6, 3) <= v < (0, 6, 5)


def counts_reserved(v: Release, engine: str) -> bool:
    """Whether what PyTorch's allocator holds beyond its tensors counts: total - free up to 0.5, and in 0.6.5 and 0.6.6,
    which subtract allocated bytes alone (0.6.6 utils.py `memory_profiling`)."""
    return engine == "V0" and ((0, 2, 5) <= v < (0, 6) or (0, 6, 5) <= v < (0, 7))


def snapshot_after_nccl(v: Release) -> bool:
    """From 0.11.0 NCCL is started before the snapshot, so its buffers are no part of the budget (gpu_worker.py)."""
    return v >= (0, 11)


def checks_free_memory(v: Release, engine: str) -> bool:
    """V1 from 0.9 refuses to start when free memory is below utilization x total (gpu_worker.py `init_device`)."""
    return engine == "V1" and v >= (0, 9)


def estimates_graphs(v: Release, runner: str) -> bool:
    """Trial captures estimate graph memory from 0.18; the V2 runner returns 0 until 0.29 (gpu/model_runner.py)."""
    return v >= (0, 29) if runner == "v2" else v >= (0, 18)


def offloads_weights(v: Release, runner: str) -> bool:
    """The V2 runner heeds --cpu-offload-gb from 0.28 only (v1/worker/gpu/model_runner.py `create_offloader`).

    A start of 0.26 with 4 GiB to offload held all its weights on the card.
    """
    return runner != "v2" or v >= (0, 28)


def deducts_graphs(v: Release, runner: str, *, asked: bool = False) -> bool:
    """From 0.20 the estimate is deducted, before where it is asked for (envs.py
    `VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS`, whose default became 1)."""
    return (asked or v >= (0, 20)) and estimates_graphs(v, runner)


def splits_blocks_over_20_mib(v: Release) -> bool:
    """Up to 0.20 the allocator splits any block; from 0.21 none of 20 MiB or more while weights load.

    gpu_worker.py `_scoped_allocator_max_split(max_split_size_mb=20)`.
    """
    return v < (0, 21)


def frees_swizzled_scales(v: Release) -> bool:
    """Before 0.25 gpt-oss on Triton's kernels keeps the scales as stored beside those that the kernels read.

    0.25 fused_moe/oracle/mxfp4.py `convert_gpt_oss_weight_to_mxfp4_moe_kernel_format`.
    """
    return v >= (0, 25)


_V2_ARCHITECTURES: Final = (
    ((0, 22), frozenset({"Qwen3ForCausalLM"})),
    ((0, 23), frozenset({"Qwen3ForCausalLM", "LlamaForCausalLM", "MistralForCausalLM"})),
    (
        (0, 24),
        frozenset(
            {
                "Qwen3ForCausalLM",
                "LlamaForCausalLM",
                "MistralForCausalLM",
                "DeepseekV2ForCausalLM",
                "Qwen2MoeForCausalLM",
                "GraniteMoeForCausalLM",
            }
        ),
    ),
    ((0, 25), frozenset({"DeepseekV2ForCausalLM", "Qwen2MoeForCausalLM", "GraniteMoeForCausalLM"})),
    (
        (0, 28),
        frozenset(
            {
                "DeepseekV2ForCausalLM",
                "Qwen2MoeForCausalLM",
                "GraniteMoeForCausalLM",
                "DeepseekV4ForCausalLM",
                "KimiK3ForConditionalGeneration",
            }
        ),
    ),
)


def default_runner(v: Release, architecture: str, *, moe: bool, hybrid: bool) -> Literal["v1", "v2"]:
    """Which GPU model runner is the default (config/vllm.py `use_v2_model_runner` of 0.22 to 0.29).

    0.22-0.24 by architecture; 0.25-0.28 every dense decoder that is no hybrid, and a few MoE; from 0.29 all.
    """
    if v < (0, 22):
        return "v1"
    if v >= (0, 29):
        return "v2"
    listed = next(archs for since, archs in reversed(_V2_ARCHITECTURES) if v >= since)
    if architecture in listed:
        return "v2"
    return "v2" if v >= (0, 25) and not moe and not hybrid else "v1"


def fits_length(v: Release) -> bool:
    """--max-model-len auto takes the longest that fits from 0.14 (kv_cache_utils.py `_auto_fit_max_model_len`)."""
    return v >= (0, 14)


def has_swap_space(v: Release, engine: str) -> bool:
    """V0 alone swaps blocks out to the host (0.10 worker/cache_engine.py `num_cpu_blocks`)."""
    return engine == "V0" and v < (0, 11)


def tokens_are_concurrency(v: Release) -> bool:
    """From 0.20.1 "GPU KV cache size" is max concurrency x max length; before, blocks // groups x block size."""
    return v >= (0, 20, 1)


def hybrid_prefix_caching(v: Release) -> bool:
    """Models with recurrent layers cache prefixes by default from 0.28 (config/model.py, engine/arg_utils.py)."""
    return v >= (0, 28)


def group_size_slack(v: Release) -> float | None:
    """How much larger the largest layer kind may be to become the group size (kv_cache_utils.py).

    None before 0.12: always the smallest; 1.25 from 0.12, 1.5 from 0.18.
    """
    if v < (0, 12):
        return None
    return 1.5 if v >= (0, 18) else 1.25


def counts_what_is_gone(v: Release) -> bool:
    """From 0.27 all that became less free since the snapshot counts, tensors of the runner's own included; before,
    what "Model loading took" and what the profile run added (utils/mem_utils.py `memory_profiling`)."""
    return v >= (0, 27)


def loads_before_quantising(v: Release) -> bool:
    """Whether --quantization fp8 on a 16-bit checkpoint first holds all of it: up to 0.15 layers are made in 16 bit,
    from 0.16 on the meta device (model_executor/layers/quantization/fp8.py)."""
    return v < (0, 16)


def keeps_what_it_quantises(v: Release) -> bool:
    """0.13 to 0.15 quantise each layer as soon as it is read, while the loop over the checkpoint still holds every
    16-bit parameter (quantization/fp8.py `patched_weight_loader`; `params_dict` of the models' `load_weights`)."""
    return (0, 13) <= v < (0, 16)


def checks_length(v: Release) -> bool:
    """Whether a cache smaller than one longest request stops the start: 0.2.5 does not look, 0.3.0 does
    (engine/llm_engine.py `_init_cache`)."""
    return v >= (0, 3)


def needs_of_whole_model(v: Release) -> bool:
    """0.14 to 0.16 compare the KV of all layers with the smallest rank's memory, so pipelining earns no credit.

    kv_cache_utils.py `get_kv_cache_configs`; before and after, each rank is compared with its own layers.
    """
    return (0, 14) <= v < (0, 17)


def needs_by_group(v: Release) -> bool:
    """From 0.14 the check counts padded groups; before, the plain sum over layers (`max_memory_usage_bytes`)."""
    return v >= (0, 14)


def hybrid_kv_manager(v: Release) -> bool:
    """Groups of unlike layers exist from 0.9.2; before, sliding layers were cached like full ones in V1."""
    return v >= (0, 9, 2)


def in_flight_batches(v: Release, runner: str, pipeline: int, *, async_scheduling: bool) -> int:
    """Batches whose blocks a sliding layer may hold (0.26 config/vllm.py `max_concurrent_batches`); 1 before."""
    if v < (0, 26):
        return 1
    if not async_scheduling:
        return pipeline
    if runner == "v2":
        return pipeline + 1
    return 2 if pipeline <= 1 else pipeline


def async_scheduling_default(v: Release) -> bool:
    """On by default from 0.14 (config/vllm.py); before, only when asked for."""
    return v >= (0, 14)


def mla_is_latent(v: Release) -> bool:
    """MLA caches its latent vector from 0.7.0; before, as MHA with padded heads (0.6.6 deepseek_v2.py)."""
    return v >= (0, 7)


def graphs_for_full_and_piecewise(v: Release) -> bool:
    """FULL_AND_PIECEWISE became the default mode in 0.11 (config/compilation.py `cudagraph_mode`)."""
    return v >= (0, 11)
