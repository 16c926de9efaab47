"""What `up` prints once a server serves: where it is, its three things, and two snippets that work as pasted."""

from __future__ import annotations

from trimtab.engine.registry import ServerRecord
from trimtab.messages import msg


def connection(record: ServerRecord, lang: str) -> str:
    """Base URL, key and model id, then curl and openai-python."""
    model = record.models[0] if record.models else ""
    rows = [(msg("base URL"), record.base_url), (msg("API key"), record.api_key), (msg("model id"), model)]
    lines = [f"  {name.text(lang)}: {value}" for name, value in rows]
    lines += ["", curl(record, model), "", openai_python(record, model)]
    return "\n".join(lines) + "\n"


def curl(record: ServerRecord, model: str) -> str:
    """One line for a shell; the body is JSON in single quotes."""
    return (
        f"curl -s {record.base_url}/chat/completions -H 'Authorization: Bearer {record.api_key}' "
        "-H 'Content-Type: application/json' "
        f'-d \'{{"model": "{model}", "max_tokens": 32, '
        '"messages": [{"role": "user", "content": "Name three colours."}]}\''
    )


def openai_python(record: ServerRecord, model: str) -> str:
    """A script for the openai package."""
    return "\n".join(
        [
            "from openai import OpenAI",
            "",
            f'client = OpenAI(base_url="{record.base_url}", api_key="{record.api_key}", timeout=120, max_retries=2)',
            "answer = client.chat.completions.create(",
            f'    model="{model}", max_tokens=32, messages=[{{"role": "user", "content": "Name three colours."}}]',
            ")",
            "print(answer.choices[0].message.content)",
        ]
    )
