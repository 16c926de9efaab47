"""Whether an answer is what its prompt asks for: exact text, regular expression, JSON schema."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trimtab.bench.comparing.prompts import Prompt
from trimtab.engine.api import decode
from trimtab.errors import HostError, UsageError
from trimtab.messages import msg


def require(prompts: Sequence[Prompt]) -> None:
    """Before anything is asked: HostError when jsonschema is missing, UsageError for a schema that is none."""
    schemas = [(p.id, p.json_schema) for p in prompts if p.json_schema is not None]
    if not schemas:
        return
    try:
        import jsonschema
    except ImportError:
        raise HostError(
            msg("a prompt has a json_schema, and jsonschema, which checks it, is not installed"),
            hint=msg("Install it: pip install 'trimtab[report]', or leave json_schema out."),
        ) from None
    for name, schema in schemas:
        try:
            jsonschema.validators.validator_for(schema).check_schema(schema)
        except jsonschema.SchemaError as error:
            raise UsageError(
                msg("the json_schema of prompt {id} is none: {reason}", id=name, reason=error.message)
            ) from None


def failed_checks(prompt: Prompt, answer: str) -> tuple[str, ...]:
    """The names of the checks that `answer` does not pass; a fence around JSON is no fault."""
    found: list[str] = []
    if prompt.exact is not None and answer.strip() != prompt.exact.strip():
        found.append("exact")
    if prompt.regex is not None and re.search(prompt.regex, answer) is None:
        found.append("regex")
    if prompt.json_schema is not None and not _fits(answer, prompt.json_schema):
        found.append("json_schema")
    return tuple(found)


def _fits(answer: str, schema: dict[str, object]) -> bool:
    import jsonschema

    fenced = re.fullmatch(r"\s*```(?:json)?\s*\n(.*?)\n?```\s*", answer, re.DOTALL)
    text = (fenced[1] if fenced else answer).strip()
    value = decode(text)
    if value is None and text != "null":
        return False
    return bool(jsonschema.validators.validator_for(schema)(schema).is_valid(value))
