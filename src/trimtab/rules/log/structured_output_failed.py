"""The structured-output back end failed on a schema, regex or grammar inside the engine.

What it does: reads what xgrammar, outlines, llguidance and lm-format-enforcer raise, and errors that come out of vLLM's
    own code for structured output.
Why it matters: such an error fails the request, and in several versions ends the engine with all the others.
How to fix: simplify what the client asks for (formats, look-arounds, recursion, sizes); try another back end
    (--structured-outputs-config, before 0.11 --guided-decoding-backend); a newer vLLM checks it before the engine.
When to ignore: where one client sends what it should not and the server goes on.
Sources: vllm/v1/structured_output, vllm/model_executor/guided_decoding, vLLM 0.4 to 0.33; xgrammar's C++ checks.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import HUNCH, LIKELY, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"(?:regex_converter|json_schema_converter|grammar_parser|grammar_compiler|grammar_functor|ebnf_\w+)\.cc:\d+",
    r"(?:Regex|EBNF|[Ll]ark|[Gg]rammar) (?:parsing|parse|lexer|compilation) error",
    r"xgrammar\.\w+\.Invalid\w+|InvalidJSONError|InvalidStructuralTagError|lark\.exceptions\.\w+",
    r"[Ss]tructured outputs? backend does not support|Failed to (?:compile|convert) (?:the )?(?:grammar|schema|regex)",
)
MATCHER = (
    r"grammar_matcher\.cc:\d+",
    r"'?(?:CFG|Regex)\w*(?:Guide|Index|LogitsProcessor|FSM)\w*'? object has no attribute",
)
PLACE = r"structured_output[/\\]|guided_decoding[/\\]|[/\\](?:xgrammar|outlines\w*|llguidance|lmformatenforcer)[/\\]"
OF_GRAMMARS = r"[Ss]tructured outputs?\b|\bguided[_ ](?:decoding|json|regex|grammar)|xgrammar|\boutlines\b|llguidance"


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS), (LIKELY, MATCHER))
    if found is None and (guess := words.guessed(context, OF_GRAMMARS, PLACE)):
        found = guess, HUNCH
    if found is not None:
        hit, confidence = found
        message = msg(
            "structured output failed on the schema, regex or grammar of a request: {said}",
            zh="结构化输出无法处理请求中的 schema、正则或语法：{said}",
            said=words.quoted(hit),
        )
        yield context.finding(hit, message, confidence, severity=words.by_request(context))


RULE = Rule(
    code="LOG515",
    name="structured-output-failed",
    severity=Severity.ERROR,
    summary=msg(
        "The structured-output back end failed on a schema, regex or grammar inside the engine.",
        zh="引擎内的结构化输出后端无法处理某个 schema、正则或语法。",
    ),
    check=check,
    cause=Cause.SCHEMA_UNSUPPORTED,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/v1/structured_output/backend_xgrammar.py",),
    bad=(
        Example(
            "RuntimeError: [11:20:00] /project/cpp/regex_converter.cc:73: Regex parsing error at position 2: The "
            "bracket is not closed.\n"
        ),
        Example("AttributeError: 'CFGGuide' object has no attribute 'copy'\n"),
    ),
    good=(
        Example("INFO 11-30 03:43:16 [core.py:1] structured_outputs_config=StructuredOutputsConfig(backend='auto')\n"),
    ),
)
