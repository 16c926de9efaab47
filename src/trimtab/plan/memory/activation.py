"""Peak of PyTorch's memory in the profile run: the widest layer, the logits and sampler, and the encoder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from trimtab.facts.derived import Derived
from trimtab.facts.layers import Attention, LayerFacts
from trimtab.facts.model import ModelFacts
from trimtab.plan.memory.allocator import GIB
from trimtab.plan.memory.caches import is_packed, state_bytes
from trimtab.plan.memory.compiled import compiles
from trimtab.plan.memory.draft import draft_layers
from trimtab.plan.memory.encoder import encoder_peak, held_inputs
from trimtab.plan.memory.mamba import gdn_bytes, mamba2_bytes
from trimtab.plan.memory.settings import Settings
from trimtab.plan.parallel import Stage

FLOOR_GIB = 0.03
"""Buffers of the runner that live through the profile run (measured on H200: the same from 2,048 to 32,768 tokens)."""
MLA_WORKSPACE_TOKENS = 64 * 1024
"""Cap of the chunked-prefill workspace (v1/attention/backends/mla/common.py `chunked_prefill_workspace_size`)."""
TRITON_PROGRAMS = 132
"""Most programs of the top-k, top-p kernel: the card's multiprocessors (132 on Hopper)."""
V0_LOGIT_BYTES = 39
"""V0 sorts: logits in 16 and 32 bit, sorted ones, 8-byte indices, and what the sort and the mask take beside."""
SORTED_LOGIT_BYTES = 38
"""V1 while PyTorch sorts (up to 0.17): logits 2 + 4, sorted 4, indices 8 + 8, radix sort's other halves 12."""
LOGIT_BYTES = 14
"""V1 with Triton's or FlashInfer's kernel: logits 2 + 4, probabilities 4, noise or masked logits 4."""
V2_LOGIT_BYTES = 2
"""The V2 runner's profile run skips top-k and top-p: the logits alone."""
REJECTION_LOGIT_BYTES = 30
"""V1 while it drafts: the rejection sampler's six fp32 copies of bonus, target and recovered logits beside the random
ones in 16 bit, two a sequence (v1/sample/rejection_sampler.py; three starts of 0.26 on H200)."""
DRAFT_STREAMS = {"mtp": 4, "eagle3": 5, "eagle": 1}
"""Tensors of tokens x hidden size that a draft's forward holds beside its layer: the target's hidden states (EAGLE-3:
of three layers), embeddings and their norms (deepseek_mtp.py, llama_eagle3.py; measured with 0.26 on H200)."""
COMPILED_MTP_STREAMS = 1
"""The same where MTP is compiled, whose norms and embeddings are one kernel: four public starts of 0.20 to 0.24 have
two to four tensors more for the cache than four would leave."""
FLUSH_BYTES = 60 << 20
"""What the compiler overwrites to empty the L2 cache between two timings (H200: 60 MiB)."""
MOE_CHUNK_TOKENS = 32 * 1024
"""Tokens that the fused experts take at once before 0.13 (envs.py `VLLM_FUSED_MOE_CHUNK_SIZE`)."""
FREES_GATE_UP = frozenset({
    "LlamaForCausalLM", "MistralForCausalLM", "Step1ForCausalLM", "BailingMoeForCausalLM", "HyperCLOVAXForCausalLM",
    "FalconH1ForCausalLM", "Phi3ForCausalLM",
})  # fmt: skip
"""Architectures whose MLP drops the gate-up output before the down projection (`x, _ = self.gate_up_proj(x)`)."""
SANDWICH_NORMS = ("Gemma2", "Gemma3", "Gemma4", "Olmo2", "Glm4ForCausalLM")


class Peak(msgspec.Struct, frozen=True):
    """GiB of each thing that could be the widest; `persistent` is held under the first three."""

    persistent: float
    mlp: float
    attention: float
    sampler: float
    encoder: float
    compiling: float

    @property
    def steps(self) -> float:
        """What steps take again and again; the compiler works once, at the start."""
        return max(self.persistent + max(self.mlp, self.attention, self.sampler), FLOOR_GIB + self.encoder)

    @property
    def total(self) -> float:
        return max(self.steps, self.compiling)


def activation(settings: Settings, peak: Peak) -> Derived[float]:
    """GiB by which the profile run raises PyTorch's peak over the weights."""
    shown = {"persistent": peak.persistent, "mlp": peak.mlp, "attention": peak.attention}
    shown |= {"sampler": peak.sampler, "encoder": peak.encoder, "compiling": peak.compiling}
    return Derived(
        value=peak.total,
        unit="GiB",
        formula="max(persistent + max(mlp, attention, sampler), encoder, compiling)",
        source="computed",
        inputs={"tokens": settings.max_num_batched_tokens} | {f"{k}_gib": round(v, 3) for k, v in shown.items()},
        note="vLLM v1/worker/gpu_model_runner.py profile_run; worker/model_runner.py profile_run (V0)",
    )


def peak_of(settings: Settings, model: ModelFacts, stage: Stage, *, samples: bool = True) -> Peak:
    """The peak's parts on one stage; `samples`: this rank runs the sampler."""
    layers = model.layers[stage.start : stage.end]
    first = next((i for i, x in enumerate(layers) if x.moe), 0)
    moe = max((_moe_bytes(settings, model, x) for x in distinct(layers)), default=0)
    kept = (moe if settings.version >= (0, 13) else 0) + _state_bytes(settings, model, stage)
    row = model.element_bytes * settings.max_num_batched_tokens * model.hidden_size
    stream = row * _streams(settings, model, stage)
    mlp = max((stream + _mlp_bytes(settings, model, x) for x in distinct(layers[first:])), default=stream)
    early = max((stream + _mlp_bytes(settings, model, x) for x in distinct(layers[:first])), default=0)
    mlp = max(mlp, early - kept, stream + (0 if kept else moe))  # experts' scratch does not exist before the first ones
    mixer = max((_mixer_bytes(settings, model, x, stream) for x in distinct(layers)), default=stream)
    for layer, rows in drafted(settings, model) if stage.last else ():
        mlp = max(mlp, stream + _mlp_bytes(settings, model, layer) + rows * row)
        mixer = max(mixer, _mixer_bytes(settings, model, layer, stream) + rows * row)
    shown = held_inputs(settings, model) if stage.first else 0
    return Peak(
        persistent=FLOOR_GIB + kept / GIB,
        mlp=(mlp + shown) / GIB,
        attention=(mixer + shown) / GIB,
        sampler=(_sampler_bytes(settings, model) + shown) / GIB if stage.last and samples else 0.0,
        encoder=encoder_peak(settings, model) / GIB if stage.first else 0.0,
        compiling=_compile_bytes(settings, model) / GIB if stage.first else 0.0,
    )


def _mixer_bytes(settings: Settings, model: ModelFacts, layer: LayerFacts, stream: int) -> int:
    """A layer's widest point before its MLP, with the tensors of tokens x hidden size (`stream`: those of most) alive.

    MLA holds two of them, compiled one: the rest is freed before the prefill workspace is made (four starts of 0.26).
    """
    if layer.recurrent and layer.recurrent.kind == "gdn" and settings.engine == "V1":
        return gdn_bytes(settings, model, layer)
    latent = layer.attention is not None and layer.attention.kv_lora_rank is not None
    if latent and settings.engine == "V1" and not is_packed(model.layers):
        row = settings.max_num_batched_tokens * model.hidden_size * model.element_bytes
        return _attention_bytes(settings, model, layer) + row * (2 if settings.enforce_eager else 1)
    return max(stream + _attention_bytes(settings, model, layer), mamba2_bytes(settings, model, layer))


def distinct(layers: Sequence[LayerFacts]) -> Iterable[LayerFacts]:
    """Each kind of layer once: equal ones are the same object."""
    return {id(x): x for x in layers}.values()


def drafted(settings: Settings, model: ModelFacts) -> Iterable[tuple[LayerFacts, int]]:
    """The draft's layers, which V1's profile run goes through too, and the tensors held beside each."""
    rows = DRAFT_STREAMS.get(settings.speculative_method or "", 0)
    compiled = not settings.enforce_eager and compiles(settings.version, model.architecture)
    if settings.speculative_method == "mtp" and compiled:
        rows = COMPILED_MTP_STREAMS
    if settings.engine == "V0" or not rows:
        return ()
    return [(layer, rows) for layer in distinct(draft_layers(settings, model))]


HYPER_STREAMS = 16
"""DeepSeek V4's hyper-connections: four residual streams before and after a layer, and their mixing in fp32."""


def _streams(settings: Settings, model: ModelFacts, stage: Stage) -> int:
    """Tensors of tokens x hidden size alive at the widest point: input, residual, output and, by model, more."""
    alive = 3 if model.architecture in FREES_GATE_UP else 4
    if model.architecture.startswith(SANDWICH_NORMS):
        alive += 1
    if is_packed(model.layers):
        alive += HYPER_STREAMS
    if settings.tensor_parallel_size > 1:
        alive += 1
    if model.towers and settings.encoder and settings.engine == "V1" and settings.enforce_eager:
        alive -= 1  # the residual is the runner's buffer of embeddings (gpu_model_runner.py `inputs_embeds`)
    return alive if stage.last else alive - 1


def _mlp_bytes(settings: Settings, model: ModelFacts, layer: LayerFacts) -> int:
    """Gate-up output and its activation: 3 x inner size a token, split by tensor parallelism."""
    inner = layer.moe.shared_intermediate if layer.moe else layer.intermediate
    if layer.moe and _triton_mxfp4(settings, layer):
        inner += layer.moe.per_token * 2 * layer.moe.intermediate // 3
    return 3 * inner // settings.tensor_parallel_size * settings.max_num_batched_tokens * model.element_bytes


def _state_bytes(settings: Settings, model: ModelFacts, stage: Stage) -> int:
    """V0 makes room for every sequence's recurrent state at the first forward, inside the profile run
    (0.10.0 model_executor/models/mamba_cache.py)."""
    if settings.engine != "V0":
        return 0
    mixers = [x.recurrent for x in model.layers[stage.start : stage.end] if x.recurrent]
    return sum(state_bytes(m, settings) for m in mixers) * settings.max_num_seqs


def _moe_bytes(settings: Settings, model: ModelFacts, layer: LayerFacts) -> int:
    """Two scratch buffers of the fused experts, one row per token and expert chosen (fused_moe `workspace_shapes`).

    Data-parallel ranks send each other all their tokens first (distributed/device_communicators/all2all.py).
    """
    moe = layer.moe
    if moe is None or _triton_mxfp4(settings, layer):
        return 0
    inner, hidden, element = moe.intermediate // settings.expert_tensor_ranks, model.hidden_size, model.element_bytes
    tokens = settings.max_num_batched_tokens * settings.data_parallel_size
    up = inner * max(
        (len(w.spans) for w in layer.weights if w.part == "experts"), default=2
    )  # gate and up, or up alone
    fp8 = any(w.part == "experts" and w.scheme.bits == 8 for w in layer.weights)
    if _deep_gemm(settings, layer):
        rows = tokens * moe.per_token + -(-moe.experts // settings.expert_ranks) * 127
        return rows * (2 * max(up, hidden) * element + hidden)
    if settings.version >= (0, 13):
        return tokens * moe.per_token * (max(inner, hidden) + max(up, hidden)) * element
    chunk = min(tokens, MOE_CHUNK_TOKENS)
    rows = chunk * moe.per_token
    gathered = 2 * tokens * hidden if settings.data_parallel_size > 1 else 0
    quantised = chunk * hidden + rows * inner if fp8 else 0
    return (rows * (max(up, hidden) + inner) + gathered) * element + quantised


def _deep_gemm(settings: Settings, layer: LayerFacts) -> bool:
    """Experts in block-wise fp8 run DeepGEMM on Hopper and data-centre Blackwell: rows are aligned to 128 per expert
    and a permuted copy of the input is kept (fused_moe/deep_gemm_moe.py `workspace_shapes`). Not with 8 tensor ranks
    from 0.14, and on Hopper from 0.17 with expert parallelism alone (fused_moe/oracle/fp8.py)."""
    blocks = any(w.part == "experts" and w.scheme.block == (128, 128) for w in layer.weights)
    if not blocks or settings.version < (0, 11) or not settings.deep_gemm:
        return False
    if (0, 14) <= settings.version < (0, 17):
        return settings.tensor_parallel_size < 8
    return settings.version < (0, 17) or not settings.hopper or settings.enable_expert_parallel


def _triton_mxfp4(settings: Settings, layer: LayerFacts) -> bool:
    """MXFP4 experts on Hopper run OpenAI's Triton kernels, which keep no scratch and hold the gate-up rows alone
    (0.26 fused_moe/oracle/mxfp4.py; measured at 2,048 and 8,192 tokens)."""
    mxfp4 = any(w.part == "experts" and w.scheme.name == "mxfp4" for w in layer.weights)
    return mxfp4 and settings.hopper and settings.version >= (0, 26)


def _attention_bytes(settings: Settings, model: ModelFacts, layer: LayerFacts) -> int:
    """The fused projection, the attention output, and for MLA the dummy up-projection of a whole prefill workspace."""
    mixer = layer.mixer
    tp = settings.tensor_parallel_size
    tokens = settings.max_num_batched_tokens
    if not isinstance(mixer, Attention):
        rows = sum(w.rows for w in layer.weights if w.part == "mamba" and w.split == "rows")
        return rows // tp * tokens * model.element_bytes
    if mixer.kv_lora_rank is None:
        q = mixer.heads * mixer.head_dim // tp
        width = 2 * q + mixer.kv_elements(tp)
        if any(w.name.endswith("q_norm") for w in layer.weights):  # normed copies; the layer's input is free by then
            width += max(0, q + mixer.kv_elements(tp) // 2 - model.hidden_size)
        return width * tokens * model.element_bytes
    workspace = max(8 * settings.max_model_len, 4 * settings.max_num_seqs * (settings.block_size or 16))
    heads = mixer.heads // tp
    width = mixer.head_dim - (mixer.qk_rope_head_dim or 0) + mixer.v_head_dim
    scratch = min(workspace, MLA_WORKSPACE_TOKENS) * heads * width
    row = heads * mixer.head_dim
    if settings.engine == "V1":  # output and latents, as projected and normed
        latents = 2 * (mixer.q_lora_rank or 0) + 2 * mixer.kv_lora_rank + (mixer.qk_rope_head_dim or 0)
        row += heads * mixer.v_head_dim + latents
    return (scratch + tokens * row) * model.element_bytes


def _sampler_bytes(settings: Settings, model: ModelFacts) -> int:
    """Logits of one token per sequence through top-k, top-p: sorting in fp32 takes several copies of them."""
    if model.task != "generate":
        return 0
    rows = min(settings.max_num_seqs, settings.max_num_batched_tokens)
    item = max((t.tokens_per_item or 0 for t in model.towers), default=0)
    if settings.engine == "V0" and item and settings.encoder:
        rows = max(1, min(rows, settings.max_num_batched_tokens // item))  # 0.7.3 worker/model_runner.py _dummy_run
    hidden = settings.max_num_batched_tokens * model.hidden_size * model.element_bytes
    scratch = min(TRITON_PROGRAMS, rows) * model.vocab_size * 4 if _triton_sampler(settings) else 0
    return int(rows * model.vocab_size * sampler_element_bytes(settings)) + scratch + hidden


def _triton_sampler(settings: Settings) -> bool:
    """Top-k and top-p in one Triton kernel, a row of fp32 logits per program (v1/sample/ops/topk_topp_triton.py),
    where FlashInfer, which needs no such rows, does not sample."""
    if settings.flashinfer_sampler or settings.engine == "V0":
        return False
    return settings.runner == "v1" and settings.version >= (0, 18)


def _compile_bytes(settings: Settings, model: ModelFacts) -> int:
    """A copy of the embedding, on which the compiler times the kernel that reads it, when its cache is empty.

    config/compilation.py sets `benchmark_combo_kernel`, for which the inductor makes the kernel's inputs and its two
    outputs of tokens x hidden size anew. Six starts of 0.26 on H200 show it to 0.01 GiB, the V1 runner's too; first
    starts of 0.19.2, 0.21 and 0.24 with the V1 runner do not.
    """
    if settings.enforce_eager or settings.compile_cache or not compiles(settings.version, model.architecture):
        return 0
    if model.towers and settings.encoder:
        return 0  # embeddings are made outside the compiled graph (gpu_model_runner.py `_dummy_run`, `inputs_embeds`)
    if settings.runner != "v2" and settings.version < (0, 26):
        return 0
    copy = sum(w.rank_bytes(settings.tensor_parallel_size) for w in model.embedding if w.split == "vocab")
    row = settings.max_num_batched_tokens * model.hidden_size * model.element_bytes
    if settings.speculative_method in DRAFT_STREAMS:  # compiled after the target has run, whose hidden states are held
        return copy + 4 * row + FLUSH_BYTES + int(FLOOR_GIB * GIB)
    return copy + 2 * row


def sampler_element_bytes(settings: Settings) -> float:
    """Bytes per logit at the sampler's peak."""
    if settings.runner == "v2":
        return V2_LOGIT_BYTES
    if settings.engine == "V0":
        return V0_LOGIT_BYTES
    if settings.version < (0, 18) and not settings.flashinfer_sampler:
        return SORTED_LOGIT_BYTES
    if settings.speculative_method:
        return REJECTION_LOGIT_BYTES
    return LOGIT_BYTES
