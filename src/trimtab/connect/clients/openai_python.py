"""openai for Python: base URL and key as arguments. Read in openai 3.57.0."""

from __future__ import annotations

from trimtab.connect.client import Client
from trimtab.connect.values import Connection, Protocol
from trimtab.messages import msg


def snippet(connection: Connection) -> str:
    """A script; the key comes from the environment."""
    key = f'os.environ["{connection.key_env}"]' if connection.needs_key else '"none"'
    return "\n".join(
        [
            *(["import os", ""] if connection.needs_key else []),
            "from openai import OpenAI",
            "",
            f'client = OpenAI(base_url="{connection.with_v1}", api_key={key}, timeout=120, max_retries=2)',
            "answer = client.chat.completions.create(",
            f'    model="{connection.model}", max_tokens=32,',
            '    messages=[{"role": "user", "content": "Name three colours."}],',
            ")",
            "print(answer.choices[0].message.content)",
        ]
    )


CLIENT = Client(
    name="openai-python",
    title="openai (Python)",
    protocol=Protocol.CHAT,
    package="pip openai",
    version="3.57.0",
    with_v1=True,
    snippet=snippet,
    notes=(msg("Without arguments it reads OPENAI_BASE_URL and OPENAI_API_KEY."),),
)
