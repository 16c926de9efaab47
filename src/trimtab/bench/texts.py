"""The prompts of a load: sized in the server's own tokens, shared beginnings, conversations, pictures."""

from __future__ import annotations

import asyncio
import base64
import random
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import httpx2
import msgspec

from trimtab.bench.endpoint import Server
from trimtab.bench.load import Shape, Wanted
from trimtab.bench.prompt import Ruler, count, text_of
from trimtab.errors import UsageError
from trimtab.messages import msg

_TRIES, _AT_ONCE = 4, 8


class Sized(msgspec.Struct, frozen=True):
    """A request with its text; `tokens` by the server's /tokenize (`exact`) or by a ruler of two samples."""

    wanted: Wanted
    text: str
    tokens: int
    exact: bool
    mark: str = ""  # what makes it new to a prefix cache; stands behind the shared prefix

    def again(self, number: int, conversation: int, seed: int) -> Sized:
        """The same prompt as another request: its mark is a new one of as many digits."""
        mark = mark_of(seed, number)
        wanted = msgspec.structs.replace(self.wanted, id=number, conversation=conversation)
        return Sized(wanted, self.text.replace(self.mark, mark, 1), self.tokens, False, mark)


def mark_of(seed: int, number: int) -> str:
    """The mark of request `number`: always as long, so that all cost about the same tokens."""
    return f"{seed}.{number:07d}"


async def write(
    client: httpx2.AsyncClient, server: Server, ruler: Ruler, shape: Shape, wanted: Sequence[Wanted], seed: int
) -> list[Sized]:
    """The texts of `wanted`, in its order. UsageError where a length is too short for the template and the prefix."""
    _check_room(wanted, shape, ruler)
    heads = await _heads(client, server, ruler, shape, seed)
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(item: Wanted) -> Sized:
        async with places:
            if item.text is not None:
                counted = await count(client, server, item.text) if ruler.exact else None
                return Sized(item, item.text, counted or len(item.text) // 4, counted is not None)
            head, mark = heads[item.prefix], mark_of(seed, item.id)
            return await _sized(client, server, ruler, item, head, mark, shape.prefix_tokens)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(item)) for item in wanted]
    return [task.result() for task in tasks]


def _check_room(wanted: Sequence[Wanted], shape: Shape, ruler: Ruler) -> None:
    taken = shape.prefix_tokens + ruler.fixed
    for item in wanted:
        if item.text is None and item.turn == 0 and item.input_tokens < taken:
            raise UsageError(
                msg("a prompt of {tokens} tokens has no room for {taken:.0f} of template and prefix",
                    tokens=item.input_tokens, taken=taken),
                hint=msg("Ask for longer prompts with --input, or for a shorter --prefix."),
            )  # fmt: skip


async def _heads(client: httpx2.AsyncClient, server: Server, ruler: Ruler, shape: Shape, seed: int) -> list[str]:
    if not shape.prefix_tokens:
        return [""] * shape.prefixes
    words = max(1, round(shape.prefix_tokens / ruler.per_word))
    return [text_of(words, f"{seed}-{number}") + " " for number in range(shape.prefixes)]


async def _sized(
    client: httpx2.AsyncClient,
    server: Server,
    ruler: Ruler,
    item: Wanted,
    head: str,
    mark: str,
    prefix_tokens: int,
) -> Sized:
    words = ruler.words(max(ruler.fixed + 1, item.input_tokens - prefix_tokens))
    best: Sized | None = None
    for _ in range(_TRIES if ruler.exact else 0):
        text = head + text_of(words, mark)
        counted = await count(client, server, text)
        if counted is None:
            break
        if best is None or abs(counted - item.input_tokens) < abs(best.tokens - item.input_tokens):
            best = Sized(item, text, counted, True, mark)
        if counted == item.input_tokens:
            break
        step = round((item.input_tokens - counted) / ruler.per_word)
        words = max(1, words + (step or (1 if counted < item.input_tokens else -1)))
    return best or Sized(item, head + text_of(words, mark), prefix_tokens + ruler.tokens(words), False, mark)


def content_of(sized: Sized, shape: Shape) -> str | list[dict[str, Any]]:
    """What a user message holds: the text, with pictures where the shape has them."""
    if not shape.images:
        return sized.text
    source = random.Random(sized.wanted.id)
    urls = [picture(shape.image_pixels, source) for _ in range(shape.images)]
    return [{"type": "text", "text": sized.text}, *({"type": "image_url", "image_url": {"url": u}} for u in urls)]


def picture(pixels: int, source: random.Random) -> str:
    """A square PNG of one random tint per row, as a data URL; never twice the same, so that no cache knows it."""
    rows = b"".join(b"\0" + bytes(source.randrange(256) for _ in range(3)) * pixels for _ in range(pixels))
    head = struct.pack(">IIBBBBB", pixels, pixels, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 1)), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()
