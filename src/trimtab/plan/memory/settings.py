"""Settings: every value that decides vLLM's memory, as vLLM itself would resolve it before it starts."""

from __future__ import annotations

from typing import Literal

import msgspec

from trimtab.messages import Message
from trimtab.plan.memory.versions import Release

Engine = Literal["V0", "V1"]
Runner = Literal["v1", "v2"]
Usage = Literal["server", "llm"]


class Settings(msgspec.Struct, frozen=True):
    """A launch command after vLLM's own defaulting; names are vLLM's flags, sizes in GiB unless they say otherwise.

    `assumed` says which value came from no flag and from no certain rule.
    """

    version: Release
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    gpu_memory_utilization: float
    fit_length: bool = False
    """Whether vLLM shortens max_model_len to what fits (--max-model-len auto)."""
    engine: Engine = "V1"
    runner: Runner = "v1"
    usage: Usage = "server"
    dtype: str = "bfloat16"
    kv_cache_dtype: str = "auto"
    quantization: str | None = None
    mxfp4_tile: tuple[int, int] = (1, 1)
    """Multiples to which the mxfp4 kernel of this card rounds hidden and inner size of experts."""
    swizzled_scales: bool = False
    """Whether the experts' mxfp4 scales are laid out for OpenAI's Triton kernels (`weights.rank_tensors`)."""
    deep_gemm: bool = False
    """Whether the card runs DeepGEMM (compute capability 9.x and 10.x)."""
    hopper: bool = False
    """Whether every card is of compute capability 9.x: FlashAttention 3, OpenAI's Triton kernels for mxfp4."""
    unified: bool = False
    """Whether the cards share the host's memory (GB10, Jetson)."""
    multicast: bool = False
    """Whether the cards share an NVSwitch, which multicasts; bridges and PCIe do not."""
    nccl_reduces: bool = False
    """Whether NCCL carries every all-reduce: more than two ranks without NVLink (custom_all_reduce.py)."""
    capability: float = 8.0
    """The lowest CUDA compute capability of the cards."""
    flashinfer: bool = False
    """Whether FlashInfer is installed and heeded: vLLM requires it on CUDA from 0.11.1 (requirements/cuda.txt)."""
    flashinfer_sampler: bool = False
    """Whether it samples: by default from 0.21 (envs.py `VLLM_USE_FLASHINFER_SAMPLER`)."""
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    data_parallel_size_local: int | None = None
    pipeline_partition: tuple[int, ...] = ()
    """Layers per stage where VLLM_PP_LAYER_PARTITION says."""
    decode_context_parallel_size: int = 1
    enable_expert_parallel: bool = False
    block_size: int | None = None
    enforce_eager: bool = False
    cudagraph_capture_sizes: tuple[int, ...] = ()
    cudagraph_mode: str = "FULL_AND_PIECEWISE"
    enable_chunked_prefill: bool = True
    enable_prefix_caching: bool = True
    cpu_offload_gb: float = 0.0
    swap_space: float = 0.0
    kv_offloading_size: float = 0.0
    kv_cache_memory_bytes: int | None = None
    num_gpu_blocks_override: int | None = None
    speculative_method: str | None = None
    num_speculative_tokens: int = 0
    draft_tensor_parallel_size: int | None = None
    max_loras: int = 0
    max_lora_rank: int = 0
    encoder: bool = True
    """Whether a vision or audio tower is loaded (not with --language-model-only)."""
    profile_encoder: bool = True
    disable_hybrid_kv_cache_manager: bool = False
    async_scheduling: bool = False
    estimate_graphs: bool = True
    estimate_asked: bool = False
    """Whether the environment asks for graphs' memory to be deducted, as 0.18 and 0.19 do not by themselves."""
    compile_cache: bool = False
    """Whether torch.compile finds its cache: a first start does not, and compiling shows in the peak."""
    mamba_cache_mode: str = "none"
    ssm_bytes: int | None = None
    mamba_block_size: int | None = None
    cpu_kvcache_space_gib: float | None = None
    assumed: tuple[Message, ...] = ()

    @property
    def world_size(self) -> int:
        """Ranks of one replica."""
        return self.tensor_parallel_size * self.pipeline_parallel_size

    @property
    def cards_needed(self) -> int:
        """Cards of this launch: ranks of all replicas, or of those on this host where the command says how many."""
        return self.world_size * (self.data_parallel_size_local or self.data_parallel_size)

    @property
    def expert_ranks(self) -> int:
        """Ranks that share the experts by count, or 1 when they are split by inner size (0.26 fused_moe/config.py)."""
        return self.tensor_parallel_size * self.data_parallel_size if self.enable_expert_parallel else 1

    @property
    def expert_tensor_ranks(self) -> int:
        """Ranks that split each expert: without expert parallelism vLLM flattens DP into it (fused_moe/config.py)."""
        return 1 if self.enable_expert_parallel else self.tensor_parallel_size * self.data_parallel_size

    @property
    def graphs(self) -> bool:
        return not self.enforce_eager and self.cudagraph_mode != "NONE"
