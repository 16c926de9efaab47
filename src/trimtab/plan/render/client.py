"""What a client needs, always together: base URL, key and model id, as client.json, .env, curl and openai-python."""

from __future__ import annotations

import json
import re

from trimtab.plan.render.launch import Launch
from trimtab.plan.render.shelltext import comment

NO_KEY = "EMPTY"
"""vLLM asks for no key unless it was started with one; clients insist on sending something."""
TIMEOUT_S, MAX_RETRIES = 120, 2
EVERY_ADDRESS = ("", "0.0.0.0", "::")
FIRST_WORDS = "Say hello in one sentence."


def render(launch: Launch) -> str:
    """Markdown with one code block a file. The URL ends in /v1, which OpenAI's clients need."""
    url, key = base_url(launch), launch.command.get("api-key") or NO_KEY
    model = launch.served_name.split(" ")[0] if _several(launch) else launch.served_name
    settings = {"base_url": url, "api_key": key, "model": model, "timeout": TIMEOUT_S, "max_retries": MAX_RETRIES}
    parts = [
        ("client.json", "json", json.dumps(settings, indent=2, ensure_ascii=False)),
        (".env", "sh", _dotenv(url, key, model)),
        ("curl", "sh", _curl(model)),
        ("openai-python", "python", _PYTHON),
    ]
    head = re.sub(r"\s+", " ", f"Clients of {launch.about}") + (
        " On another machine: its name in place of localhost. Where the server was given VLLM_API_KEY, that is the key."
    )
    return "\n\n".join([head, *(_block(name, kind, text) for name, kind, text in parts)]) + "\n"


def base_url(launch: Launch) -> str:
    """As seen from the machine that serves."""
    host = launch.command.get("host") or ""
    host = "localhost" if host in EVERY_ADDRESS else f"[{host}]" if ":" in host else host
    scheme = "https" if launch.command.has("ssl-certfile") else "http"
    return f"{scheme}://{host}:{launch.port}/v1"


def _several(launch: Launch) -> bool:
    last = launch.command.last("served-model-name")
    return last is not None and len(last.values) > 1


def _block(name: str, kind: str, text: str) -> str:
    """A code block whose fence is longer than any in the text."""
    fence = "`" * max(3, *(len(run) + 1 for run in [*re.findall(r"`+", text), ""]))
    return f"{name}\n\n{fence}{kind}\n{text}\n{fence}"


def _dotenv(url: str, key: str, model: str) -> str:
    """Read by shells (`. ./.env`) and dotenv libraries alike: single quotes, in which nothing is expanded."""
    values = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": key, "OPENAI_MODEL": model}
    return "\n".join(f"{name}={_single(value)}" for name, value in values.items())


def _single(text: str) -> str:
    return text if re.fullmatch(r"[\w./:\[\]-]+", text, re.ASCII) else "'" + text.replace("'", "'\"'\"'") + "'"


def _curl(model: str) -> str:
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": FIRST_WORDS}]}, ensure_ascii=False)
    return "\n".join([
        "#!/bin/sh",
        comment("Reads .env from this directory."),
        "set -aeu",
        "# shellcheck source=/dev/null",
        ". ./.env",
        'curl --fail-with-body "$OPENAI_BASE_URL/chat/completions" \\',
        '  -H "Authorization: Bearer $OPENAI_API_KEY" \\',
        '  -H "Content-Type: application/json" \\',
        "  --data @- <<'JSON'",
        body,
        "JSON",
    ])  # fmt: skip


_PYTHON = f'''import json

from openai import OpenAI

with open("client.json", encoding="utf-8") as file:
    settings = json.load(file)
model = settings.pop("model")
client = OpenAI(**settings)
answer = client.chat.completions.create(model=model, messages=[{{"role": "user", "content": "{FIRST_WORDS}"}}])
print(answer.choices[0].message.content)'''
