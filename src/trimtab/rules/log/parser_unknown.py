"""This vLLM has no tool or reasoning parser of that name.

What it does: looks for the refusal of --tool-call-parser and --reasoning-parser, by argparse and by the server.
Why it matters: parsers come with versions and are renamed; documentation of another version names others.
How to fix: take one of the names that the message lists; a parser of your own needs --tool-parser-plugin.
When to ignore: never; the server did not start.
Sources: vllm/entrypoints/openai/api_server.py (validate_api_server_args) and vllm/tool_parsers, vllm/reasoning, vLLM
    0.6 to 0.33.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"invalid (?P<kind>tool call|reasoning) parser: (?P<name>\S+)",
    r"argument --(?P<kind>tool-call|reasoning)-parser: invalid choice: '(?P<name>[^']+)'",
    r"(?P<kind>[Tt]ool|[Rr]easoning) (?:parser|helper):? '(?P<name>[^']+)' not found",
    r"[Pp]arser '(?P<name>[^']+)' not found\. Available parsers",
    r"(?:reasoning_parser\w*|tool_parser)(?:=|:)'?(?P<name>\w+)'? (?:which )?has not been registered",
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    if hit is None:
        return
    reasoning = "reason" in words.group(hit, "kind").lower() or "reason" in hit.match[0]
    flag = "--reasoning-parser" if reasoning else "--tool-call-parser"
    listed = re.search(r"(?:chose from|choose from|Available parsers:?) *[\[({ ]*([^})\]]+)", hit.entry.text)
    if listed:
        message = msg(
            "this vLLM has no {flag} {name}; it has {known}",
            zh="此 vLLM 没有 {flag} {name}；可用的有 {known}",
            flag=flag,
            name=hit["name"],
            known=nearest(hit["name"], listed[1]),
        )
    else:
        message = msg("this vLLM has no {flag} {name}", zh="此 vLLM 没有 {flag} {name}", flag=flag, name=hit["name"])
    yield context.finding(hit, message, SURE)


def nearest(name: str, listed: str) -> str:
    """The names most like it, of many; all where they are few."""
    names = [n.strip(" '\"") for n in listed.split(",")]
    near = get_close_matches(name, names, 4, 0.3)
    return ", ".join(names) if len(names) <= 6 or not near else ", ".join([*near, "..."])


RULE = Rule(
    code="LOG223",
    name="parser-unknown",
    severity=Severity.ERROR,
    summary=msg("This vLLM has no tool or reasoning parser of that name.", zh="此 vLLM 没有该名称的工具或推理解析器。"),
    check=check,
    cause=Cause.PARSER_UNKNOWN,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/entrypoints/openai/api_server.py",),
    bad=(
        Example("KeyError: 'invalid tool call parser: llama9_json (chose from { hermes,llama3_json,mistral })'\n"),
        Example(
            "api_server.py: error: argument --tool-call-parser: invalid choice: 'llama3_json' (choose from "
            "'mistral', 'hermes')\n"
        ),
        Example("ValueError: invalid reasoning parser: deepthought (chose from { deepseek_r1,qwen3 })\n"),
    ),
    good=(Example("INFO 11-30 03:43:16 [api_utils.py:286] non-default args: {'tool_call_parser': 'hermes'}\n"),),
)
