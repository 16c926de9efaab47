"""The installed Transformers is newer than this vLLM bears.

What it does: reads attribute errors on Transformers' tokenizers and configurations, and a name that both register.
Why it matters: an unbounded requirement or an upgrade of its own pulls in a version whose classes lost what vLLM of
    that time calls.
How to fix: install what this vLLM was released with (`pip install 'transformers<5'` for vLLM before 0.18), or upgrade
    vLLM.
When to ignore: when the class is the model's own code.
Sources: vllm/transformers_utils/tokenizer.py (get_cached_tokenizer), vLLM 0.8 to 0.17; Transformers 4.54 and 5.0.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import LIKELY, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    (
        r"(?<!Mistral)\b(?!Mistral|TokenizerInfo)\w*Tokeniz\w+'?(?: object)? has no attribute '?"
        r"(?P<name>all_special_tokens_extended|(?!lower\b)[a-z]\w+)"
    ),
    (
        r"cannot import name '(?P<name>ALLOWED_\w+|no_init_weights|OutputRecorder|TensorType|"
        r"WHISPER_ATTENTION_CLASSES|_validate_images\w+)' from '?transformers"
    ),
    r"is already used by a Transformers config, pick another name",
    (
        r"'?\w+Config'?(?: object)? has no attribute '?(?P<name>rope_scaling|rope_theta|use_return_dict|"
        r"torch_dtype|max_position_embeddings)\b"
    ),
)
HINTS = (
    r"Support for Transformers v4 is (?:removed|no longer)",
    r"PreTrainedModel\.\w+\(\) got an unexpected keyword argument '(?P<name>\w+)'",
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS), (LIKELY, HINTS))
    if found is not None:
        hit, confidence = found
        message = msg(
            "the installed Transformers is newer than this vLLM bears: {said}",
            zh="安装的 Transformers 对此 vLLM 来说太新：{said}",
            said=words.said(hit),
        )
        yield context.finding(hit, message, confidence)


RULE = Rule(
    code="LOG310",
    name="transformers-newer-than-vllm",
    severity=Severity.ERROR,
    summary=msg(
        "The installed Transformers is newer than this vLLM bears.", zh="安装的 Transformers 对此 vLLM 来说太新。"
    ),
    check=check,
    cause=Cause.TRANSFORMERS_TOO_NEW,
    sources=("https://github.com/vllm-project/vllm/blob/v0.11.0/vllm/transformers_utils/tokenizer.py",),
    bad=(
        Example(
            "AttributeError: Qwen2Tokenizer has no attribute all_special_tokens_extended. Did you mean: "
            "'num_special_tokens_to_add'?\n"
        ),
        Example("AttributeError: TokenizersBackend has no attribute all_special_tokens_extended\n"),
        Example("ValueError: 'aimv2' is already used by a Transformers config, pick another name.\n"),
    ),
    good=(Example("WARNING 11-30 03:43:16 [x.py:1] Support for Transformers v4 is deprecated.\n"),),
)
