"""The model brings code of its own, and nobody allowed vLLM to run it.

What it does: looks for the refusal of Transformers and of vLLM, in all wordings since 2023, and for the prompt that
    had no terminal.
Why it matters: the configuration, tokenizer or model class is a Python file in the repository; without leave it is
    not loaded and the start ends.
How to fix: read the repository's Python files, then give --trust-remote-code; better still, see whether a newer vLLM
    has the model built in.
When to ignore: never; the model did not load.
Sources: transformers/dynamic_module_utils.py (resolve_trust_remote_code), Transformers 4.30 to 5;
    vllm/transformers_utils/config.py, vLLM 0.4 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.log.fixes import set_flag
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"contains custom code which must be executed to correctly ?load the model",
    r"requires you to execute (?:the|custom) (?:\w+ )?(?:file|code) (?:in|contained in)",
    r"set the option [`']?trust_remote_code=[Tt]rue",
    r"pass(?:ing)? the argument [`']?trust_remote_code=True",
    r"consider setting [`']?trust_remote_code=True",
    r"Do you wish to run the custom code\?",
    r"execute custom code contained in the model repository",
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS))
    if found is not None:
        hit, confidence = found
        message = msg(
            "the model brings code of its own and vLLM was not allowed to run it ({said})",
            zh="模型自带代码，但没有允许 vLLM 运行（{said}）",
            said=words.said(hit),
        )
        yield context.finding(hit, message, confidence, fix=set_flag(context, "trust-remote-code", None))


RULE = Rule(
    code="LOG201",
    name="remote-code-not-allowed",
    severity=Severity.ERROR,
    summary=msg(
        "The model brings code of its own, and nobody allowed vLLM to run it.",
        zh="模型自带代码，而没有人允许 vLLM 运行它。",
    ),
    check=check,
    cause=Cause.TRUST_REMOTE_CODE_MISSING,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/transformers_utils/config.py",),
    bad=(
        Example(
            (
                "INFO 11-30 03:43:16 [api_utils.py:286] non-default args: {'model_tag': '/models/m', 'model': "
                "'/models/m'}\n"
                "ValueError: The repository for /models/m contains custom code which must be executed to "
                "correctly load the model. You can inspect the repository content at https://hf.co//models/m.\n"
                "Please pass the argument `trust_remote_code=True` to allow custom code to be run.\n"
            ),
            fixed="vllm serve /models/m --trust-remote-code",
        ),
        Example(
            "ValueError: Loading org/m requires you to execute the configuration file in that repo on your "
            "local machine. Make sure you have read the code there to avoid malicious use, then set the "
            "option `trust_remote_code=True` to remove this error.\n"
        ),
        Example("Do you wish to run the custom code? [y/N] \nEOFError: EOF when reading a line\n"),
    ),
    good=(
        Example(
            "INFO 11-30 03:43:16 [core.py:1] Initializing a V1 LLM engine (v0.26.0) with config: model='m', "
            "trust_remote_code=True\n"
        ),
    ),
)
