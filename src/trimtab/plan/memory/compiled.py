"""Which models torch.compile takes: those that capture their graphs by themselves turn it off, with what it makes."""

from __future__ import annotations

from trimtab.plan.memory.versions import Release

_V4 = ("DeepseekV4", "DeepSeekV4")
_M3 = (*_V4, "MiniMaxM3Sparse")
_INKLING = (*_M3, "Inkling")
_KIMI = (*_INKLING, "KimiK3", "KimiLinear")
_SPARSE = (*_KIMI, "DeepseekV32", "Dots3Note", "GlmMoeDsa", "HYV4")
_NEXT = (*_SPARSE, "Glm5Next", "Qwen4Exp")
_UNCOMPILED = (
    ((0, 33), (*_NEXT, "AliceAI", "BeamForCausalLM", "MuseSpark", "Step5For")),
    ((0, 31), _NEXT),
    ((0, 29), _SPARSE),
    ((0, 28), _KIMI),
    ((0, 26), _INKLING),
    ((0, 24), _M3),
    ((0, 23), _V4),
)


def compiles(version: Release, architecture: str) -> bool:
    """Whether the model is compiled by default (0.23 to 0.33 config/vllm.py `VLLM_USE_BREAKABLE_CUDAGRAPH`)."""
    listed = next((names for since, names in _UNCOMPILED if version >= since), None)
    return listed is None or not architecture.startswith(listed)
