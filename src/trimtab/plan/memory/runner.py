"""Which GPU model runner a launch gets: the release's default for its model, unless a flag asks for what V2 lacks."""

from __future__ import annotations

from trimtab.facts.model import ModelFacts
from trimtab.plan.memory.given import Given
from trimtab.plan.memory.settings import Engine, Runner
from trimtab.plan.memory.versions import Release, default_runner

_DRAFTS = (
    ((0, 29), frozenset({"eagle", "eagle3", "mtp", "dflash", "dspark", "extract_hidden_states"})),
    ((0, 25), frozenset({"eagle", "eagle3", "mtp", "dflash", "dspark"})),
    ((0, 24), frozenset({"eagle", "eagle3", "mtp", "dflash"})),
    ((0, 22), frozenset({"eagle", "eagle3", "mtp"})),
)
"""Drafting methods that V2 knows, by release; from 0.30 those that it lacks are fewer."""
_LACKS_DRAFTS = (
    ((0, 33), frozenset({"suffix", "custom_class"})),
    ((0, 32), frozenset({"suffix", "medusa", "mlp_speculator", "custom_class"})),
    ((0, 31), frozenset({"ngram", "ngram_gpu", "suffix", "medusa", "mlp_speculator", "custom_class"})),
    ((0, 30), frozenset({"ngram", "ngram_gpu", "draft_model", "draft", "suffix", "medusa", "mlp_speculator",
                         "custom_class"})),
)  # fmt: skip


def runner_of(
    given: Given, version: Release, model: ModelFacts, engine: Engine, *, method: str | None, mamba_mode: str
) -> Runner:
    """VLLM_USE_V2_MODEL_RUNNER, else as config/vllm.py `use_v2_model_runner` decides (0.22 to 0.33)."""
    asked = given.env.get("VLLM_USE_V2_MODEL_RUNNER")
    if asked in ("0", "1"):
        return "v2" if asked == "1" else "v1"
    if engine == "V0" or _lacks(given, version, method, mamba_mode):
        return "v1"
    if model.task != "generate" and version < (0, 29):
        return "v1"
    hybrid = any(x.recurrent for x in model.layers)
    return default_runner(version, model.architecture, moe=any(x.moe for x in model.layers), hybrid=hybrid)


def _lacks(given: Given, version: Release, method: str | None, mamba_mode: str) -> bool:
    """Whether a flag asks for what V2 has not yet (`_get_v2_model_runner_unsupported_features`)."""
    if method is not None and not _drafts(version, method):
        return True
    if method == "eagle3" and version < (0, 30) and (given.number("pipeline_parallel_size") or 1) > 1:
        return True
    if mamba_mode == "all" and (0, 30) <= version < (0, 32):
        return True
    if version < (0, 30) and (given.switch("enable_dbo") or given.switch("kv_sharing_fast_prefill")):
        return True
    if version < (0, 29) and (
        given.switch("enable_prompt_embeds") or (given.number("prefill_context_parallel_size") or 1) > 1
    ):
        return True
    return version < (0, 31) and given.text("logits_processors") is not None


def _drafts(version: Release, method: str) -> bool:
    for since, lacked in _LACKS_DRAFTS:
        if version >= since:
            return method not in lacked
    return any(method in known for since, known in _DRAFTS if version >= since)
