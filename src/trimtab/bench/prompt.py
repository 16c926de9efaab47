"""Prompts of a wanted number of tokens, counted by the server itself. The words mean nothing and say no secret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx2

from trimtab.bench.client import Timeouts, ask
from trimtab.bench.endpoint import Server
from trimtab.engine.api import decode

# Plain words, each one token or two in every common vocabulary, in an order in which no tokenizer finds long runs.
_WORDS = ("the", "ship", "moves", "over", "water", "and", "a", "small", "plate", "at", "its", "stern", "turns", "so")
_SAMPLE_WORDS = (16, 272)
_TRIES = 4


@dataclass(frozen=True, slots=True)
class Ruler:
    """How many tokens a text of `words` words has: `fixed` (template, beginning) + `per_word` * words."""

    fixed: float
    per_word: float
    exact: bool  # counted by /tokenize, so that a prompt can be measured again

    def words(self, tokens: float) -> int:
        """The most words that stay within `tokens`."""
        return max(1, int((tokens - self.fixed) / self.per_word))

    def tokens(self, words: int) -> int:
        return round(self.fixed + self.per_word * words)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text, and its length by /tokenize (`exact`) or by the ruler."""

    text: str
    tokens: int
    exact: bool


def text_of(words: int, mark: str) -> str:
    """A text of `words` words behind `mark`, which makes it new to a prefix cache."""
    return " ".join([mark, *(_WORDS[at % len(_WORDS)] for at in range(words))])


async def make_ruler(client: httpx2.AsyncClient, server: Server, mark: str, timeouts: Timeouts) -> Ruler | None:
    """Measure two texts by vLLM's /tokenize, else by `usage.prompt_tokens`; None when neither counts."""
    counts: list[int] = []
    exact = await count(client, server, text_of(_SAMPLE_WORDS[0], mark)) is not None
    for words in _SAMPLE_WORDS:
        text = text_of(words, mark)
        found = await count(client, server, text) if exact else await _used(client, server, text, timeouts)
        if found is None:
            return None
        counts.append(found)
    per_word = (counts[1] - counts[0]) / (_SAMPLE_WORDS[1] - _SAMPLE_WORDS[0])
    if per_word <= 0:
        return None
    return Ruler(counts[0] - per_word * _SAMPLE_WORDS[0], per_word, exact)


async def make_prompt(
    client: httpx2.AsyncClient, server: Server, ruler: Ruler, low: int, high: int, mark: str
) -> Prompt:
    """A prompt of `low` to `high` tokens, as near to `high` as the ruler gets."""
    words = ruler.words(high)
    prompt = Prompt(text_of(words, mark), ruler.tokens(words), exact=False)
    for _ in range(_TRIES if ruler.exact else 0):
        counted = await count(client, server, prompt.text)
        if counted is None:
            break
        prompt = Prompt(prompt.text, counted, exact=True)
        if low <= counted <= high:
            break
        words = max(1, words + round((high - counted) / ruler.per_word) - (1 if counted > high else 0))
        text = text_of(words, mark)
        prompt = Prompt(text, ruler.tokens(words), exact=False)
    return prompt


async def count(client: httpx2.AsyncClient, server: Server, text: str) -> int | None:
    """Tokens of `text` as a whole request, by vLLM's /tokenize; None where the server has none."""
    body: dict[str, Any] = {"model": server.model}
    body |= {"messages": [{"role": "user", "content": text}]} if server.chat else {"prompt": text}
    try:
        response = await client.post(f"{server.root}/tokenize", json=body)
    except (httpx2.TransportError, httpx2.DecodingError):
        return None
    value = decode(response.content) if response.status_code == 200 else None
    found = value.get("count") if isinstance(value, dict) else None
    return found if isinstance(found, int) else None


async def _used(client: httpx2.AsyncClient, server: Server, text: str, timeouts: Timeouts) -> int | None:
    done = await ask(client, server.url, server.body(text, 1, stream=False), timeouts)
    return done.usage.prompt_tokens if done.usage is not None else None
