"""Which catalogued model a fine-tune has the body of, read off its name: heads, layers and widths never change in one.

Its vocabulary, context and chat template may; so names that speak of a longer context, of another kind of model (a
draft, an adapter, an embedder) or of a merge of several are left alone.
"""

from __future__ import annotations

import re

BODIES: tuple[tuple[str, str], ...] = (
    (r"llama-?3\.1-?8b", "meta-llama/Llama-3.1-8B"),
    (r"llama-?3\.[13]-?70b", "meta-llama/Llama-3.1-70B"),
    (r"llama-?3\.1-?405b", "meta-llama/Llama-3.1-405B"),
    (r"llama-?3\.2-?(1|3)b", "meta-llama/Llama-3.2-{}B"),
    (r"llama-?3-?(8|70)b", "meta-llama/Meta-Llama-3-{}B"),
    (r"llama-?2-?(7|13|70)b", "meta-llama/Llama-2-{}b-hf"),
    (r"code-?llama-?(7|13|34)b", "codellama/CodeLlama-{}b-hf"),
    (r"vicuna-?(7|13)b", "lmsys/vicuna-{}b-v1.5"),
    (r"(?:llama|vicuna|wizardlm|guanaco|airoboros|wizard-vicuna|tulu)-?3[03]b", "huggyllama/llama-30b"),
    (r"mistral-?7b", "mistralai/Mistral-7B-v0.1"),
    (r"mixtral-?8x(7|22)b", "mistralai/Mixtral-8x{}B-v0.1"),
    (r"qwen-?1[.-]?5-?(0\.5|1\.8|4|7|14|32|72)b", "Qwen/Qwen1.5-{}B"),
    (r"qwen-?2\.5-?(?:coder-?|math-?)?(0\.5|1\.5|3|7|14|32|72)b", "Qwen/Qwen2.5-{}B"),
    (r"qwen-?2-?(0\.5|1\.5|7|72)b", "Qwen/Qwen2-{}B"),
    (r"qwen-?3-?(0\.6|1\.7|4|8|14|32)b", "Qwen/Qwen3-{}B"),
    (r"qwen-?3-?30b-?a3b", "Qwen/Qwen3-30B-A3B"),
    (r"yi-?(?:1\.5-?)?34b", "01-ai/Yi-34B"),
    (r"gemma-?2-?(2|9|27)b", "google/gemma-2-{}b"),
    (r"llama-guard-3-8b", "meta-llama/Llama-3.1-8B"),
    (r"hermes-4-70b", "meta-llama/Llama-3.1-70B"),
    (r"athene-v2-chat", "Qwen/Qwen2.5-72B"),
    (r"wizardlm-2-8x22b", "mistralai/Mixtral-8x22B-v0.1"),
    (r"medgemma-(4|27)b-it", "google/gemma-3-{}b-it"),
    (r"qwen3-coder-next", "Qwen/Qwen3-Next-80B-A3B-Instruct"),
    (r"deepseek-v3\.2-speciale", "deepseek-ai/DeepSeek-V3.2"),
)
"""What stands in a tune's name -> the catalogued model whose body it has."""
_OTHER = re.compile(
    r"(?<![a-z])(eagle\d?|draft|drafter|medusa|speculator|lora|qlora|adapter|embed|embedding|reward|rm|rerank|reranker|"
    r"classif\w*|mtp|dflash|vl|vision|audio|omni|llava|moe|merge|pruned|prune|depth|upscaled|franken\w*|yarn|long\w*|"
    r"rope|\d+x|\d+k|1m|x\d+b)(?![a-z])"
)

_EXPERTS = re.compile(r"8x(7|22)b")
"""Mixtral's size; any other such product is a merge."""


def body_of(name: str) -> str | None:
    """The catalogued id of the body that a model of this name (lower case, no organisation) has; None: unknown."""
    plain = name.replace("_", "-")
    if _OTHER.search(_EXPERTS.sub("", plain)):
        return None
    for pattern, model in BODIES:
        found = re.search(rf"(?<![a-z0-9.]){pattern}(?![a-z0-9.])", plain)
        if found is not None:
            return model.format(*found.groups())
    return None
