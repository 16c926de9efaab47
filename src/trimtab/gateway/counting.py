"""Tokens that no back end told: counted by its tokenizer afterwards, off the hot path, else left as estimated."""

from __future__ import annotations

import asyncio

import msgspec

from trimtab.gateway.asking import ask
from trimtab.gateway.routes import Target
from trimtab.gateway.usage import Ledger, Record

MOST_AT_ONCE = 4  # requests to tokenizers; while so many are under way the estimate stands
WITHIN_S = 2.0
_FIELDS = {"/chat/completions": ("messages", "tools"), "/completions": ("prompt",)}


class _Tokenized(msgspec.Struct):
    count: int


_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_tokenized = msgspec.json.Decoder(_Tokenized)


class Counting:
    """Gives the ledger each record once: at once, or when its prompt was counted."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._tasks: set[asyncio.Task[None]] = set()

    def __call__(self, record: Record, body: bytes, target: Target) -> None:
        asked = _FIELDS.get(record.path)
        if asked is None or "tokenize" not in target.back_end.speaks or len(self._tasks) >= MOST_AT_ONCE:
            self._ledger(record)
            return
        task = asyncio.get_running_loop().create_task(self._count(record, body, target, asked))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settle(self) -> None:
        """Return when every record was given to the ledger."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _count(self, record: Record, body: bytes, target: Target, asked: tuple[str, ...]) -> None:
        try:
            fields = _fields.decode(body)
            question = {"model": target.model, **{name: fields[name] for name in asked if name in fields}}
            path = target.back_end.bare + b"/tokenize"
            status, told = await ask(target.back_end, path, WITHIN_S, msgspec.json.encode(question))
            if status == 200:
                record.prompt_tokens = _tokenized.decode(told).count
        except (OSError, TimeoutError, ValueError):
            record.counted = False  # the estimate stands
        finally:
            self._ledger(record)
