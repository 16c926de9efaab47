"""A GGUF file that this vLLM cannot read.

What it does: from 0.24 on, where GGUF has left vLLM for a plug-in, says so, and warns where the plug-in's last release
    (0.0.5) does not know the model's type; before, up to 0.18, compares the model's
    type with those whose GGUF files Transformers 4 can read, as vLLM takes the config from there.
Why it matters: vLLM stops with "GGUF model with architecture ... is not supported yet".
How to fix: take the model's safetensors, or an AWQ, GPTQ or FP8 checkpoint; from 0.24 on install vllm-gguf-plugin.
When to ignore: when the plug-in is installed; where it warns, when it is newer than 0.0.5 and knows the type.
Sources: docs/features/quantization/gguf.md, vLLM 0.26; transformers/integrations/ggml.py (GGUF_CONFIG_MAPPING) and
    modeling_gguf_pytorch_utils.py (load_gguf_checkpoint), transformers 4.57.6, the newest that vLLM 0.12 to 0.18 allow;
    vllm_gguf_plugin/weights_adapter/default.py, 0.0.5 (build_name_map).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.engine.supported import method_known
from trimtab.facts.catalogue.lookup import entries
from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Fact, FactMissing, Finding, Rule, Severity

READ_BY_TRANSFORMERS_4 = frozenset(
    {
        "llama", "mistral", "qwen2", "qwen2_moe", "lfm2", "qwen3", "qwen3_moe", "falcon", "phi3", "bloom", "t5",
        "stablelm", "gpt2", "starcoder2", "mamba", "nemotron", "gemma2", "gemma3", "gemma3_text", "umt5", "deci",
        "decilm",
    }
)  # fmt: skip
MAPPED_BY_PLUGIN = frozenset(
    {"gemma3_text", "deepseek_v2", "deepseek_v3", "qwen2_moe", "qwen3_moe", "minimax_m2", "ernie4_5"}
)
"""Model types that the plug-in renames as GGUF writes them; another with an underscore equals no GGUF name."""
UNMAPPED_BY_PLUGIN = frozenset({"gemma4", "gemma4_text"})
"""GGUF has the name; the plug-in has no tensor map for it."""
TRANSFORMERS_5_SINCE = "0.19"
_PACKING = re.compile(r"[-_.](ud-)?(i?q\d\w*|f16|f32|bf16|mxfp4\w*)$")


def check(context: CommandContext) -> Iterator[Finding]:
    name = context.command.get("model") or (context.command.model.text if context.command.model else "")
    if not name.lower().endswith(".gguf"):
        return
    if method_known("gguf", context.version) is False and context.at_least("0.24"):
        yield _through_plugin(context, name)
        return
    if context.at_least(TRANSFORMERS_5_SINCE) or context.command.last("hf-config-path"):
        return
    kind = _model_type(context, name)
    if kind in READ_BY_TRANSFORMERS_4:
        return
    yield Finding(
        msg(
            "GGUF files of {kind} models are read by no Transformers 4, on which vLLM {version} relies",
            zh="vLLM {version} 依赖的 Transformers 4 不能读取 {kind} 模型的 GGUF 文件",
            kind=kind,
            version=context.version,
        ),
        context.place("model"),
    )


def _through_plugin(context: CommandContext, name: str) -> Finding:
    try:
        kind = _model_type(context, name)
    except FactMissing:
        kind = ""
    if kind in UNMAPPED_BY_PLUGIN or ("_" in kind and kind not in MAPPED_BY_PLUGIN):
        return Finding(
            msg(
                "vLLM {version} reads GGUF files through vllm-gguf-plugin; its release 0.0.5 cannot load {kind} models",
                zh="vLLM {version} 通过 vllm-gguf-plugin 读取 GGUF 文件，其 0.0.5 版不能加载 {kind} 模型",
                version=context.version,
                kind=kind,
            ),
            context.place("model"),
            severity=Severity.WARNING,
        )
    return Finding(
        msg(
            "vLLM {version} reads no GGUF file by itself; vllm-gguf-plugin does, for some architectures",
            zh="vLLM {version} 本身不能读取 GGUF 文件；需要 vllm-gguf-plugin，且只支持部分架构",
            version=context.version,
        ),
        context.place("model"),
        severity=Severity.INFO,  # with the plug-in, as vLLM's own page on GGUF has it, the command is right
    )


def _model_type(context: CommandContext, name: str) -> str:
    """The model's type, from its facts or from the catalogue's model of the same name."""
    if context.model is not None and context.model.model_type:
        return context.model.model_type
    stem = _squeezed(_PACKING.sub("", name.lower().rpartition("/")[2].removesuffix(".gguf")))
    for entry in entries():
        if any(_squeezed(i.rpartition("/")[2]) == stem for i in entry.ids):
            return str(entry.config.get("model_type", ""))
    raise FactMissing(Fact.MODEL)


def _squeezed(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


RULE = Rule(
    code="CMD310",
    name="gguf-architecture-unsupported",
    severity=Severity.ERROR,
    summary=msg("A GGUF file that this vLLM cannot read.", zh="该版本的 vLLM 不能读取此 GGUF 文件。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/docs/features/quantization/gguf.md",
        "https://github.com/huggingface/transformers/blob/v4.57.6/src/transformers/integrations/ggml.py",
    ),
    bad=(
        Example("vllm serve ./file-Q4_K_M.gguf\n", at="./file-Q4_K_M.gguf", vllm="0.26.0"),
        Example("vllm serve ./file-Q4_K_M.gguf\n", at="./file-Q4_K_M.gguf", vllm="0.15.1", model="gpt-oss-20b"),
        Example("vllm serve ./f-Q4_K_M.gguf\n", at="./f-Q4_K_M.gguf", vllm="0.26.0", model="google/gemma-4-31B-it"),
    ),
    good=(Example("vllm serve ./file-Q4_K_M.gguf\n", vllm="0.15.1", model="qwen2.5-7b"),),
)
