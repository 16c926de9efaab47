"""The installed Transformers is older than the model or its files.

What it does: reads Transformers' own words for a model type it does not know, for tokenizer classes of its fifth
    version, and imports that an older one lacks.
Why it matters: config and tokenizer are read by Transformers, also where vLLM has the model itself.
How to fix: install the Transformers that this vLLM allows (`pip install -U transformers`); where vLLM does not know
    the architecture either, a newer vLLM.
When to ignore: when the checkpoint's model type is misspelt.
Sources: transformers/models/auto/configuration_auto.py and tokenization_auto.py, Transformers 4.30 to 5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import LIKELY, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    (
        r"`rope_scaling` must be a dictionary with (?:with )?two fields, .{0,200}'(?P<name>rope_type|"
        r"low_freq_factor|long_factor)'"
    ),
    r"No module named '(?P<name>transformers\.[\w.]+)'",
    r"model type `(?P<name>[^`]+)` but Transformers does not recognize this architecture",
    r"Tokenizer class (?P<name>TokenizersBackend|SentencePieceBackend) does not exist",
    (
        r"requires (?:the )?`?transformers`?(?: version)? ?>=? ?[\d.]+|[Pp]lease (?:upgrade|update|install)(?: "
        r"your)? `?transformers`?|transformers ?>=? ?[\d.]+ is required"
    ),
)
HINTS = (
    (
        r"cannot import name '(?P<name>(?!ALLOWED_|no_init_weights|OutputRecorder|TensorType|WHISPER_ATT|"
        r"_validate_images)\w+)' from '?transformers|module '?transformers\S* has no attribute "
        r"'(?P<attribute>\w+)'"
    ),
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS), (LIKELY, HINTS))
    if found is None:
        key = context.framed(r"CONFIG_MAPPING\[|configuration_auto\.py")
        if key is None or not re.match(r"KeyError: '\w+'", key.entry.text):
            return
        found = key, LIKELY
    hit, confidence = found
    message = msg(
        "the installed Transformers is older than the model or its files: {said}",
        zh="安装的 Transformers 比模型或其文件旧：{said}",
        said=words.said(hit) if hit.match.string == hit.entry.text else hit.entry.text[:200],
    )
    yield context.finding(hit, message, confidence)


RULE = Rule(
    code="LOG309",
    name="transformers-older-than-model",
    severity=Severity.ERROR,
    summary=msg(
        "The installed Transformers is older than the model or its files.", zh="安装的 Transformers 比模型或其文件旧。"
    ),
    check=check,
    cause=Cause.TRANSFORMERS_TOO_OLD,
    sources=(
        "https://github.com/huggingface/transformers/blob/main/src/transformers/models/auto/configuration_auto.py",
    ),
    bad=(
        Example(
            "ValueError: The checkpoint you are trying to load has model type `llama9` but Transformers does "
            "not recognize this architecture. This could be because of an issue with the checkpoint, or "
            "because your version of Transformers is out of date.\n"
        ),
        Example("ValueError: Tokenizer class TokenizersBackend does not exist or is not currently imported.\n"),
    ),
    good=(Example("ValueError: Tokenizer class NoSuchTokenizer does not exist or is not currently imported.\n"),),
)
