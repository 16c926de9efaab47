"""A character of printed text stands where the shell and vLLM want an ASCII one.

What it does: looks for the dashes, quotes and blanks that articles and office programs put in place of `--`, `"` and
    a blank, in words that stand without quotes.
Why it matters: the shell does not know such quotes and blanks, and vLLM refuses the words as unrecognized arguments.
How to fix: type the character anew; `--fix --unsafe` writes the ASCII one.
When to ignore: in a value that is meant to hold it.
Sources: Python's argparse (prefix_chars is "-"); Unicode 15, East Asian Width and General Punctuation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.engine.command import Edit, Span
from trimtab.engine.source import Word
from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Fix, Grade, Rule, Severity

DASHES = "‐‑‒–—―−－"
QUOTES = {**dict.fromkeys("“”„‟＂", '"'), **dict.fromkeys("‘’‚‛＇", "'")}
BLANKS = "\u00a0\u2002\u2003\u2009\u202f\u3000"
UNSEEN = "\u200b\u200c\u200d\u2060\ufeff"
# A flag that begins with any dash but two of ASCII's: "—port", "-–port", "－－port".
DASHED = re.compile(rf"-?[{DASHES}]+-?(?=[A-Za-z])")
WITHIN = re.compile(rf"[{BLANKS}{UNSEEN}{''.join(QUOTES)}]")


def check(context: CommandContext) -> Iterator[Finding]:
    for word in context.command.words:
        dash = DASHED.match(word.text)
        found = [dash] if dash else []
        if is_bare(word):
            found += WITHIN.finditer(word.text)
        if found:
            yield finding(word, found)


def is_bare(word: Word) -> bool:
    """Whether the shell itself sees the word's characters: no quotes around, no list of words around."""
    raw = word.layer.data[word.span.start : word.span.end]
    return word.layer.parent is None and word.via is None and not raw.startswith((b"'", b'"', b"$"))


def finding(word: Word, found: list[re.Match[str]]) -> Finding:
    """All that is wrong in one word, mended in one go: half a pair of quotes would open one."""
    spans = [word.layer.root_span(Span(word.at[m.start()], word.at[m.end()])) for m in found]
    first = found[0][0].lstrip("-")[0]
    shown = msg("a character that is not seen", zh="看不见的字符") if first in BLANKS + UNSEEN else first
    return Finding(
        msg(
            "{word} holds {shown} (U+{code}), which only looks like what is meant",
            zh="{word} 中有 {shown}（U+{code}），只是看起来像应写的字符",
            word=word.text,
            shown=shown,
            code=f"{ord(first):04X}",
        ),
        spans[0],
        Fix(tuple(Edit(span, meant(m[0])) for span, m in zip(spans, found, strict=True)), Grade.UNSAFE),
    )


def meant(text: str) -> str:
    """What is meant, in ASCII."""
    if not text.strip("-" + DASHES):
        return "--"
    return " " if text in BLANKS else QUOTES.get(text, "")


RULE = Rule(
    code="CMD024",
    name="typographic-character",
    severity=Severity.ERROR,
    summary=msg(
        "A character of printed text stands where an ASCII one is wanted.",
        zh="该用 ASCII 字符的地方用了排版字符（破折号、弯引号、特殊空白）。",
    ),
    check=check,
    sources=(
        "https://docs.python.org/3/library/argparse.html#prefix-chars",
        "https://www.unicode.org/charts/PDF/U2000.pdf",
        "https://www.unicode.org/charts/PDF/UFF00.pdf",
    ),
    bad=(
        Example("vllm serve m —port 8001\n", at="—", fixed="vllm serve m --port 8001\n", vllm="0.26"),
        Example("vllm serve m －－port 8001\n", at="－－", fixed="vllm serve m --port 8001\n", vllm="0.26"),
        Example(
            "vllm serve m --served-model-name “qwen”\n",
            at="“",
            fixed='vllm serve m --served-model-name "qwen"\n',
            vllm="0.26",
        ),
        Example("vllm serve m\u00a0--port 8001\n", at="\u00a0", fixed="vllm serve m --port 8001\n", vllm="0.26"),
    ),
    good=(
        Example("vllm serve m --served-model-name 通义千问-7B\n", vllm="0.26"),
        Example('vllm serve m --hf-overrides \'{"a": "“x”"}\'\n', vllm="0.26"),
    ),
)
