"""What compose services, Kubernetes containers and Dockerfiles share: image, entry point, arguments, variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from trimtab.engine.command import Container, EnvUse, Form, Span, Value
from trimtab.engine.source import Word

MODEL_FLAGS = (
    "--model",
    "--tensor-parallel-size",
    "--served-model-name",
    "--max-model-len",
    "--gpu-memory-utilization",
)
LONGEST_VALUE = 100_000
SHELLS = {"bash", "sh", "zsh", "dash", "ash"}


class Box(msgspec.Struct):
    """A container as declared: `entry` None where the image's own entry point starts."""

    form: Form
    span: Span
    facts: Container | None
    entry: list[Word] | None = None
    args: list[Word] = msgspec.field(default_factory=list)
    env: dict[str, EnvUse] = msgspec.field(default_factory=dict)
    anchor: Word | None = None
    managed: bool = False


def entry_value(entry: Sequence[Word] | None) -> Value | None:
    """An entry point that is given, as one text."""
    if not entry:
        return None
    spans = [word.source_span() for word in entry]
    span = Span(min(s.start for s in spans), max(s.end for s in spans))
    return Value(" ".join(w.text for w in entry), span, not all(w.known for w in entry))


def script_of(words: Sequence[Word]) -> Word | None:
    """The script of `sh -c SCRIPT`, behind other words (`tini --`)."""
    for i, word in enumerate(words[:-2]):
        if word.text.rpartition("/")[2] in SHELLS:
            for j in range(i + 1, len(words) - 1):
                if re.fullmatch(r"-[a-z]*c[a-z]*", words[j].text):
                    return words[j + 1]
    return None


def serves(box: Box) -> bool:
    """Whether the image itself starts vLLM's server with the arguments."""
    if box.managed:
        return True
    image = box.facts.image if box.facts else None
    flags = any(w.text.startswith(MODEL_FLAGS) for w in box.args)
    if image is None:
        return flags
    name = image.text.partition("@")[0].rpartition("/")[2].partition(":")[0]
    first = box.args[0].text if box.args else "-"
    if name.startswith("vllm-openai"):
        return not re.fullmatch(r"(ba|z|da)?sh|python3?|sleep|tail|/bin/.*", first)
    return flags and (image.unknown or "vllm" in image.text or first.startswith("-"))


def expanded(word: Word, pattern: re.Pattern[str], lookup: Callable[[re.Match[str]], str | None]) -> Word:
    """The word with each match of `pattern` replaced by what `lookup` gives; not known where it gives None."""
    if not pattern.search(word.text):
        return word
    text: list[str] = []
    at: list[int] = []
    known, done, size = word.known, 0, 0
    for found in pattern.finditer(word.text):
        text.append(word.text[done : found.start()])
        at += word.at[done : found.start()]
        value = lookup(found) if size < LONGEST_VALUE else None
        known = known and value is not None
        put = found.group() if value is None else value
        text.append(put)
        size += len(put)
        at += [word.at[found.start()]] * len(put)
        done = found.end()
    text.append(word.text[done:])
    return Word("".join(text), [*at, *word.at[done:]], word.span, word.layer, known, word.item)
