"""The tokenizer's files are absent, broken, or of a class that cannot be loaded.

What it does: looks for the words of Transformers, tokenizers, sentencepiece and Mistral's library for a tokenizer
    that cannot be made.
Why it matters: weights without tokenizer, as in many GGUF files and fine-tunes, serve no text.
How to fix: put tokenizer.json and tokenizer_config.json beside the weights, or name a tokenizer with --tokenizer (a
    path or the base model's id).
When to ignore: never; no request could be read.
Sources: transformers/models/auto/tokenization_auto.py, convert_slow_tokenizer.py; vllm/tokenizers, vLLM 0.4 to 0.33.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import HUNCH, LIKELY, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"Can't load tokenizer for '",
    r"Tokenizer class (?P<name>\w+) does not exist or is not currently imported",
    r"Tokenizer class '?\w+'? (?:specified in the tokenizer config was not found|is not currently imported)",
    r"Couldn't instantiate the backend tokenizer",
    r"data did not match any variant of untagged enum|Error while attempting to unpickle Tokenizer",
    r"[Uu]nable to load vocabulary from file|Unable to load tokenizer",
    r"Converting from (?:SentencePiece and )?[Tt]iktoken failed|Error parsing line .* in .*tiktoken",
    r"Unrecognized configuration class .{1,300} to build an AutoTokenizer",
    r"sentencepiece_processor|ParseFromArray|could not parse ModelProto",
    r"Found \d+ files matching the pattern:? .*Make sure that a Mistral tokenizer",
    r"Tokenizer \S+ not found",
    (
        r"Failed to load (?:the )?tokenizer|tokenizer\S* not found at|Make sure only one Mistral tokenizer|"
        r"Unsupported tokenizer"
    ),
    r"Could not find tiktoken\.model or tokenizer\.model",
    r"You have either provided a non-existent path",
)
HINTS = (r"^TypeError: not a string$|Tokenizer\w*'?(?: object)? has no attribute '?lower\b",)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS), (LIKELY, HINTS))
    if found is None:
        framed = context.framed(LOADER)
        if framed is not None and re.match(REFUSED, framed.entry.text):
            found = framed, LIKELY
        elif not context.facts.served and (guess := words.guessed(context, OF_TOKENIZER, TOKENIZER)):
            found = guess, HUNCH
        else:
            return
    hit, confidence = found
    if words.group(hit, "name").startswith(NEWER):
        return
    message = msg("the tokenizer cannot be loaded: {said}", zh="无法加载分词器：{said}", said=hit.entry.text[:240])
    yield context.finding(hit, message, confidence, severity=words.by_request(context))


NEWER = ("TokenizersBackend", "SentencePieceBackend")
"""Classes that Transformers 5 writes into a tokenizer's files: an older one is at fault, not the tokenizer."""
OF_TOKENIZER = (
    r"\w*Tokenizer\w*'?(?: object)? (?:has no|got an|is not)|"
    r"[Tt]okenizer.{0,40}(?:not found|missing|invalid|unsupported)"
)
TOKENIZER = r"vllm[/\\]tokenizers[/\\]|transformers_utils[/\\]tokeni|[/\\]tokenization_\w+\.py"
LOADER = r"(?:get_tokenizer|AutoTokenizer|cached_get_tokenizer|from_file|tokenization_\w+\.py)"
REFUSED = (
    r"Exception|TypeError: (?:not a string|expected str, bytes|stat: path)|OSError"
    r"|ValueError: (?:expected|EOF|key must)|json\.decoder\.JSONDecodeError"
)


RULE = Rule(
    code="LOG216",
    name="tokenizer-unloadable",
    severity=Severity.ERROR,
    summary=msg(
        "The tokenizer's files are absent, broken, or of a class that cannot be loaded.",
        zh="分词器文件缺失、损坏，或其类无法加载。",
    ),
    check=check,
    cause=Cause.TOKENIZER_UNLOADABLE,
    sources=(
        "https://github.com/huggingface/transformers/blob/main/src/transformers/models/auto/tokenization_auto.py",
    ),
    bad=(
        Example(
            "OSError: Can't load tokenizer for '/models/m'. If you were trying to load it from "
            "'https://huggingface.co/models', make sure you don't have a local directory with the same name.\n"
        ),
        Example("ValueError: Tokenizer class NoSuchTokenizer does not exist or is not currently imported.\n"),
        Example("Exception: data did not match any variant of untagged enum ModelWrapper at line 757443 column 3\n"),
    ),
    good=(Example("ValueError: Tokenizer class TokenizersBackend does not exist or is not currently imported.\n"),),
)
