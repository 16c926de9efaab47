"""`trimtab explain [FLAG|VARIABLE|CODE|TERM]`: what it does, history by version, advice and traps; a rule's page."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Annotated

import typer

from trimtab.cli import settings
from trimtab.cli.format.explain import explanation_json, explanation_text, overview_json, overview_text, rule_json
from trimtab.cli.installed import table_for
from trimtab.cli.options import AsJson, EnginePython, VllmVersion
from trimtab.engine import flags
from trimtab.engine.flags.about import term_names
from trimtab.engine.flags.explanation import explain
from trimtab.errors import UsageError
from trimtab.messages import msg
from trimtab.rules.registry import is_name

CONTEXT_SETTINGS = {"ignore_unknown_options": True}  # `trimtab explain --max-num-seqs`: the flag is the subject
CODE = re.compile(r"[A-Za-z]{2,6}\d{3}")


def run(
    subject: Annotated[str | None, typer.Argument(metavar="[FLAG|VARIABLE|CODE|TERM]", help="What to explain.")] = None,
    vllm: VllmVersion = None,
    engine_python: EnginePython = None,
    json: AsJson = False,
) -> int:
    """Explain a flag, an environment variable, a rule or a term; alone: the flags that decide most launches."""
    lang = settings.lang()
    table = table_for(vllm, engine_python)
    if subject is None:
        print(overview_json(table) if json else overview_text(table, lang))
        return 0
    if CODE.fullmatch(subject) or is_name(subject):
        print(_rule(subject, json))
        return 0
    found = explain(subject, table)
    if found is None:
        raise _unknown(subject)
    from trimtab.rules.companions import companions

    beside = companions(found.name, table.version)
    print(explanation_json(found, beside) if json else explanation_text(found, beside, lang))
    return 0


def _rule(code: str, json: bool) -> str:
    from trimtab.rules.page import page
    from trimtab.rules.registry import find

    rule = find(code)
    return rule_json(rule, page(rule)) if json else page(rule)


def _unknown(subject: str) -> UsageError:
    near = [*flags.nearest(subject, flags.known_names()), *get_close_matches(subject.lower(), term_names(), cutoff=0.6)]
    near = get_close_matches(subject.upper(), flags.known_variables(), cutoff=0.8) or near
    hint = msg("Nearest: {names}", names=", ".join(near)) if near else msg("trimtab explain lists the groups.")
    return UsageError(msg("{name!r} is no flag, variable or term of any vLLM known here", name=subject), hint=hint)
