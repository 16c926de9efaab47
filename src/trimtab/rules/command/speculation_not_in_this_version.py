"""This version of vLLM does not have the asked-for way of speculative decoding.

What it does: compares the method of --speculative-config with those that the version knows and its engine runs.
Why it matters: vLLM refuses it, or (0.8 and 0.9) falls back to the V0 engine with another speed and memory use.
How to fix: take one of the methods that the finding names, or a vLLM that has it.
When to ignore: in vLLM 0.8 and 0.9, when the V0 engine is what is wanted.
Sources: vllm/config/speculative.py of vLLM 0.8 to 0.33; vllm/engine/arg_utils.py of 0.8 to 0.10; vLLM issue 19775.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.command import FlagUse
from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity
from trimtab.rules.runner import release

# Method -> the first minor version whose SpeculativeMethod names it.
SINCE = {
    "ngram": "0.8", "eagle": "0.8", "medusa": "0.8", "mlp_speculator": "0.8", "draft_model": "0.8",
    "eagle3": "0.9", "deepseek_mtp": "0.9",
    "ernie_mtp": "0.10", "qwen3_next_mtp": "0.10",
    "mtp": "0.11", "suffix": "0.11", "glm4_moe_mtp": "0.11", "longcat_flash_mtp": "0.11", "mimo_mtp": "0.11",
    "pangu_ultra_moe_mtp": "0.11",
    "exaone_moe_mtp": "0.14", "step3p5_mtp": "0.15", "glm4_moe_lite_mtp": "0.15", "glm_ocr_mtp": "0.16",
    "qwen3_5_mtp": "0.17", "extract_hidden_states": "0.17", "nemotron_h_mtp": "0.17", "ngram_gpu": "0.18",
    "dflash": "0.20", "hy_v3_mtp": "0.20", "exaone4_5_mtp": "0.20", "gemma4_mtp": "0.21", "mimo_v2_mtp": "0.21",
    "custom_class": "0.22", "minimax_m3_mtp": "0.24", "bailing_hybrid_mtp": "0.25", "dspark": "0.25",
    "inkling_mtp": "0.26", "kimi_k3_mtp": "0.27", "bailing_hybrid_v3_mtp": "0.28", "dots3_note_mtp": "0.28",
    "hy_v4_mtp": "0.29", "qwen4_exp_mtp": "0.29", "glm5_next_mtp": "0.30", "step5_mtp": "0.33",
}  # fmt: skip
UNTIL = {"medusa": "0.32", "mlp_speculator": "0.32"}
# A draft model runs in the V0 engine up to 0.9, in none from 0.10 to 0.14, and from 0.15 on again.
DRAFT = "draft_model"
# Parts of names of trained speculators, whose method vLLM finds out by itself.
SPECULATORS = ("eagle", "medusa", "mtp", "specul", "accelerator", "mlp", "ngram")


def check(context: CommandContext) -> Iterator[Finding]:
    use = last_use(context)
    if use is None or not words.serves(context) or context.flags.find("speculative-config") is None:
        return
    config = words.json_object(context, "speculative-config")
    method, model = config.get("method"), config.get("model")
    if method is None and isinstance(model, str) and not any(s in model.lower() for s in SPECULATORS):
        method = DRAFT
    if not isinstance(method, str) or method not in SINCE:
        return
    minor = release(context.version)[:2]
    if method == DRAFT and minor < (0, 15):
        yield drafting(context, use, fails=minor >= (0, 10) and config.get("method") == DRAFT)
    elif not release(SINCE[method]) <= minor <= release(UNTIL.get(method, "99")):
        yield Finding(
            msg(
                "{vllm} has no speculative method {method}; vLLM {since} to {until} do",
                zh="{vllm} 没有推测方法 {method}；vLLM {since} 到 {until} 才有",
                vllm=words.vllm(context),
                method=method,
                since=SINCE[method],
                until=UNTIL.get(method, msg("the newest", zh="最新版")),
            ),
            use.span,
        )


def last_use(context: CommandContext) -> FlagUse | None:
    """The last word on speculation."""
    uses = [use for use in context.command.flags if use.name == "speculative-config"]
    return uses[-1] if uses else None


def drafting(context: CommandContext, use: FlagUse, fails: bool) -> Finding:
    """The finding on a draft model before vLLM 0.15."""
    if context.at_least("0.10"):
        text = msg(
            "{vllm} does not run a draft model: it has ngram, EAGLE and MTP; draft models come back with vLLM 0.15",
            zh="{vllm} 不支持草稿模型，只有 ngram、EAGLE 和 MTP；草稿模型从 vLLM 0.15 起恢复",
            vllm=words.vllm(context),
        )
    else:
        text = msg(
            "the V1 engine of {vllm} does not run a draft model and falls back to V0; V1 has ngram and EAGLE",
            zh="{vllm} 的 V1 引擎不支持草稿模型，会退回 V0；V1 只有 ngram 和 EAGLE",
            vllm=words.vllm(context),
        )
    return Finding(text, use.span, severity=None if fails else Severity.WARNING)


RULE = Rule(
    code="CMD019",
    name="speculation-not-in-this-version",
    severity=Severity.ERROR,
    summary=msg(
        "This version of vLLM does not have this way of speculative decoding.",
        zh="这个版本的 vLLM 没有这种推测解码方法。",
    ),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/config/speculative.py",
        "https://github.com/vllm-project/vllm/blob/v0.9.2/vllm/engine/arg_utils.py",
        "https://github.com/vllm-project/vllm/issues/19775",
    ),
    bad=(
        Example(
            'vllm serve m --speculative-config \'{"model": "org/draft", "num_speculative_tokens": 5}\'\n',
            at='--speculative-config \'{"model": "org/draft", "num_speculative_tokens": 5}\'',
            vllm="0.9",
        ),
        Example(
            "vllm serve m --speculative-config.method dflash\n", at="--speculative-config.method dflash", vllm="0.18"
        ),
        Example(
            'vllm serve m --speculative-config \'{"method": "draft_model", "model": "d"}\'\n',
            at='--speculative-config \'{"method": "draft_model", "model": "d"}\'',
            vllm="0.12",
        ),
    ),
    good=(
        Example('vllm serve m --speculative-config \'{"method": "mtp"}\'\n', vllm="0.26"),
        Example('vllm serve m --speculative-config \'{"model": "org/draft"}\'\n', vllm="0.26"),
        Example('vllm serve m --speculative-config \'{"model": "org/EAGLE3-m"}\'\n', vllm="0.12"),
    ),
)
