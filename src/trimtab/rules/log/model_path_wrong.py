"""The path or name leads to no model.

What it does: looks for the words of vLLM, Transformers and the hub's library for a path that is no model directory,
    and for a name of a form that the hub cannot have.
Why it matters: a path that does not exist is taken for a hub id; the error then speaks of repository ids though a
    directory was meant.
How to fix: give the directory that holds config.json; in a container, its path inside the container, mounted with -v.
When to ignore: never; no model was found.
Sources: huggingface_hub/utils/_validators.py; transformers/utils/hub.py; vllm/transformers_utils/config.py, vLLM 0.6
    to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"Repo id must (?:be in the form|use alphanumeric)",
    r"HFValidationError",
    r"[Ii]ncorrect path_or_model_id: '(?P<model>[^']*)'",
    r"Invalid repository ID or local directory specified: '(?P<model>[^']*)'",
    (
        r"(?:^|[\s:'])(?P<model>(?:\.{0,2}/|~|[A-Za-z]:\\)\S*) is not a local folder and is not a valid model "
        r"identifier"
    ),
    (
        r"(?P<model>\S+) does not appear to have (?:a file|files) named "
        r"\(?'?(?:\w*config|params)\.json"
    ),
    r"Can't load (?:image |video |feature |audio )?(?:processor|extractor) for '(?P<model>[^']+)'",
    r"Can't load the configuration of '(?P<model>[^']+)'",
    r"No supported config format found in (?P<model>\S+?)\.?(?: |$)",
    r"Could not detect config format for no config file found",
    r"(?P<model>\S+) is not a (?:file|valid (?:folder|directory))\b",
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    if hit is None:
        return
    model = words.group(hit, "model") or context.facts.model
    if words.of_draft(context, hit):
        return
    if model:
        message = msg(
            "{model} leads to no model ({said})", zh="{model} 处没有模型（{said}）", model=model, said=words.said(hit)
        )
    else:
        message = msg("the path leads to no model ({said})", zh="该路径处没有模型（{said}）", said=words.said(hit))
    yield context.finding(hit, message, SURE)


RULE = Rule(
    code="LOG202",
    name="model-path-wrong",
    severity=Severity.ERROR,
    summary=msg("The path or name leads to no model.", zh="路径或名称指向的地方没有模型。"),
    check=check,
    cause=Cause.MODEL_NOT_FOUND,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/transformers_utils/config.py",),
    bad=(
        Example(
            "OSError: Incorrect path_or_model_id: '/models/absent'. Please provide either the path to a "
            "local folder or the repo_id of a model on the Hub.\n"
        ),
        Example(
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
            "  Value error, Invalid repository ID or local directory specified: '/models/empty'\n"
            "Please verify the following requirements:\n1. Provide a valid Hugging Face repository ID.\n"
        ),
        Example(
            "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or "
            "'namespace/repo_name': '/srv/models/m'. Use `repo_type` argument if needed.\n"
        ),
        Example(
            "OSError: /models/m does not appear to have a file named config.json. Checkout "
            "'https://huggingface.co//models/m/tree/None' for available files.\n"
        ),
    ),
    good=(
        Example(
            "OSError: acme/m is not a local folder and is not a valid model identifier listed on "
            "'https://huggingface.co/models'\n"
        ),
    ),
)
