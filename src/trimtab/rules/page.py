"""A rule's page from its declaration: the text behind docs/rules and `trimtab explain CODE`."""

from __future__ import annotations

import inspect
import re
import sys

from trimtab.rules import registry
from trimtab.rules.rule import Example, Rule

HEADINGS = ("What it does", "Why it matters", "How to fix", "When to ignore", "Sources")
_HEADING = re.compile(rf"^({'|'.join(HEADINGS)}): ?", re.MULTILINE)


def sections(docstring: str) -> dict[str, str]:
    """Heading -> text, in the order written; the summary line above the first heading is left out."""
    parts = _HEADING.split(docstring)[1:]
    return {heading: " ".join(text.split()) for heading, text in zip(parts[::2], parts[1::2], strict=True)}


def page(rule: Rule) -> str:
    """The rule as Markdown."""
    module = sys.modules[f"trimtab.rules.{registry.RULES[rule.code]}"]
    found = sections(inspect.getdoc(module) or "")
    versions = f"vLLM {rule.since or 'first'} to {rule.until or 'newest'}"
    lines = [
        f"# {rule.code} {rule.name}",
        "",
        rule.summary.text("en"),
        "",
        rule.summary.text("zh"),
        "",
        f"Severity: {rule.severity}. Holds for: {versions}.",
    ]
    for heading in HEADINGS[:-1]:
        lines += ["", f"## {heading}", "", found[heading]]
    lines += ["", "## Examples", ""]
    for word, examples in (("Bad", rule.bad), ("Good", rule.good)):
        for example in examples:
            lines += [*_example(word, example), ""]
    lines += ["## Sources", "", found["Sources"], "", *[f"- {source}" for source in rule.sources]]
    return "\n".join(lines) + "\n"


def _example(word: str, example: Example) -> list[str]:
    facts = [("vLLM", example.vllm), ("GPUs", example.gpu), ("model", example.model), ("host GiB", example.host_gib)]
    beside = ", ".join(f"{name} {value}" for name, value in facts if value)
    lines = [f"{word}{f' ({beside})' if beside else ''}:", "", *_indented(example.text)]
    if example.fixed is not None:
        lines += ["", "after the fix:", "", *_indented(example.fixed)]
    return lines


def _indented(text: str) -> list[str]:
    return [f"    {line}".rstrip() for line in text.rstrip("\n").split("\n")]
