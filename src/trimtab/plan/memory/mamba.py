"""What recurrent mixers, Mamba 2 and the gated delta rule, hold at the profile run's widest point."""

from __future__ import annotations

from trimtab.facts.layers import LayerFacts
from trimtab.facts.model import ModelFacts
from trimtab.plan.memory.settings import Settings


def mamba2_bytes(settings: Settings, model: ModelFacts, layer: LayerFacts) -> int:
    """Residual, input, projection, convolution, scan and gated norm of a Mamba 2 layer; 0 of any other.

    Run eagerly the norm makes two copies of the output in fp32. It runs eagerly in V0, inside the custom operator until
    0.11, and with --enforce-eager; the convolution's output is alive under it until 0.11. V1's profile run has no
    metadata and skips the scan. With one group on one rank the norm is one kernel without fp32 copies, and the output
    projection is the widest point (0.9.2, 0.11.2, 0.12.0 model_executor/layers/mamba/mamba_mixer2.py `forward_cuda`,
    `Mixer2RMSNormGated.forward_native`).
    """
    mixer = layer.recurrent
    if mixer is None or mixer.kind != "mamba2":
        return 0
    shapes = {s.name: s.rank_shape(settings.tensor_parallel_size) for s in mixer.states}
    heads, head_dim, state = shapes["ssm"]
    inner, conv = heads * head_dim, shapes["conv"][0]
    element = model.element_bytes
    entering = 2 * model.hidden_size + inner + conv + heads
    norm = 2 * inner * 4
    if settings.engine == "V0":
        scanned = 2 * inner if settings.version < (0, 10) else inner
        live = (conv + scanned) * element + norm
    elif settings.version < (0, 12):
        live = conv * element + norm
    elif conv == inner + 2 * state and settings.tensor_parallel_size == 1:
        live = (2 * inner + 2 * model.hidden_size) * element
    else:
        live = inner * element + max(conv * element, norm if settings.enforce_eager else 0)
    return (entering * element + live) * settings.max_num_batched_tokens


def gdn_bytes(settings: Settings, model: ModelFacts, layer: LayerFacts) -> int:
    """Projection, split and joined inputs, output, gated norm and five hidden rows of a gated-delta-rule layer.

    Qwen3-Next's interleaved projection is split by copies of q, k and v, which the compiler fuses away with one hidden
    row (0.26 gdn/qwen_gdn_linear_attn.py `forward_cuda`; starts with 2,048 to 16,384 tokens show it to the MiB).
    """
    mixer = layer.recurrent
    if mixer is None:
        return 0
    tp = settings.tensor_parallel_size
    shapes = {s.name: s.rank_shape(tp) for s in mixer.states}
    heads, head_dim, _ = shapes["ssm"]
    value, joined = heads * head_dim, shapes["conv"][0]
    rows = sum(w.rows for w in layer.weights if ".in_proj" in w.name) // tp
    width = rows + 3 * value + 2 * heads + 4 * model.hidden_size
    if model.architecture.startswith("Qwen3Next"):
        width += joined + (joined if settings.enforce_eager else 0)
    if settings.enforce_eager:
        width += model.hidden_size
    return width * settings.max_num_batched_tokens * model.element_bytes
