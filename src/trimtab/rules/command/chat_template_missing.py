"""The model's files hold no chat template, and the command gives none.

What it does: says when a model is served for text whose files (or whose catalogue entry) are known to hold no chat
    template, where neither the command nor this vLLM brings one. Of a base model it is a note, unless flags for
    clients (--api-key, --served-model-name, --host, parsers) or requests beside the command make chats likely.
Why it matters: the server starts, /v1/completions works, and every request to /v1/chat/completions ends with 400: "As
    of transformers v4.44, default chat template is no longer allowed".
How to fix: --chat-template FILE with the format the model was trained on (vLLM's examples/ hold some); a base model is
    asked by /v1/completions, or take its chat variant. DeepSeek-V3.2 has its own encoder: --tokenizer-mode deepseek_v32
    from 0.13 on, which 0.18 takes by itself.
When to ignore: when clients use /v1/completions alone.
Sources: vllm/entrypoints/chat_utils.py, 0.12 (resolve_hf_chat_template); vllm/transformers_utils/chat_templates/
    registry.py of each release (fallbacks); vllm/config/model.py, 0.13 and 0.18 (tokenizer_mode).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Fact, FactMissing, Finding, Grade, Rule, Severity

SINCE = "0.5.5"
FALLBACK = frozenset(
    {
        "blip-2", "chameleon", "clip", "colpali", "deepseek_ocr", "deepseek_ocr2", "deepseek_vl_v2", "florence2",
        "fuyu", "minicpm_ocr", "minicpmv", "minicpmv4_6", "minicpmv4_7", "paligemma", "qwen", "siglip", "siglip2",
        "unlimited-ocr", "unlimited_ocr",
    }
)  # fmt: skip
"""Model types for which some vLLM brings a template of its own (0.9 and later, chat_templates/registry.py)."""
ENCODERS = {"DeepseekV32ForCausalLM": ("deepseek_v32", "0.13", "0.18")}
"""Architecture -> the tokenizer mode that needs no template, the first vLLM with it, the first that takes it alone."""
FOR_CLIENTS = (
    "api-key", "served-model-name", "host", "response-role", "enable-auto-tool-choice", "tool-call-parser",
    "reasoning-parser", "chat-template-content-format", "default-chat-template-kwargs", "enable-reasoning",
)  # fmt: skip
NO_CHAT = ("chat-template", "tokenizer", "skip-tokenizer-init", "hf-overrides", "convert", "lora-modules")


def check(context: CommandContext) -> Iterator[Finding]:
    command = context.command
    if not words.serves(context) or any(command.last(name) for name in NO_CHAT):
        return
    if (command.get("tokenizer-mode") or "auto") not in ("auto", "hf", "slow") or not _generates(context):
        return
    model = context.require_config()
    if model.chat_template or model.task != "generate" or model.model_type in FALLBACK:
        return
    if model.chat_template is None:
        raise FactMissing(Fact.CHECKPOINT)
    mode, since, alone = ENCODERS.get(model.architecture, ("", "", ""))
    if mode and context.at_least(alone):
        return
    yield Finding(
        msg(
            "this model's files hold no chat template: /v1/chat/completions answers every request with 400",
            zh="该模型的文件没有聊天模板：/v1/chat/completions 的每个请求都会返回 400",
        ),
        context.place("model"),
        context.set_flag("tokenizer-mode", mode, Grade.UNSAFE) if mode and context.at_least(since) else None,
        severity=None if _meant_for_chat(context) else Severity.INFO,
    )


def _generates(context: CommandContext) -> bool:
    command = context.command
    return (command.get("runner") or "auto") in ("auto", "generate") and (command.get("task") or "auto") in (
        "auto",
        "generate",
    )


def _meant_for_chat(context: CommandContext) -> bool:
    """Whether chats are to be expected: the model is no base model, or the command or the text beside it reckons with
    clients. A base model that is served for itself is worth a note alone.
    """
    data = context.command.source.data
    if any(context.command.last(name) for name in FOR_CLIENTS) or b"/chat/completions" in data or b"chat.comp" in data:
        return True
    return b"/v1/completions" not in data and not context.require_config().base_model


RULE = Rule(
    code="CMD308",
    name="chat-template-missing",
    severity=Severity.WARNING,
    since=SINCE,
    summary=msg(
        "The model's files hold no chat template, and the command gives none.",
        zh="模型文件没有聊天模板，命令也没有提供。",
    ),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.12.0/vllm/entrypoints/chat_utils.py",
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/transformers_utils/chat_templates/registry.py",
    ),
    bad=(
        Example("vllm serve org/tuned --port 8001\n", at="org/tuned", vllm="0.8.5", model="lmsys/vicuna-13b-v1.5"),
        Example(
            "vllm serve m --port 8001\n",
            at="m",
            fixed="vllm serve m --port 8001 --tokenizer-mode deepseek_v32\n",
            vllm="0.14.0",
            model="deepseek-ai/DeepSeek-V3.2",
        ),
    ),
    good=(
        Example("vllm serve m --chat-template own.jinja\n", vllm="0.8.5", model="lmsys/vicuna-13b-v1.5"),
        Example("vllm serve m\n", vllm="0.18.0", model="deepseek-ai/DeepSeek-V3.2"),
    ),
)
