"""What each side of a comparison answered, live or read from the file of an earlier run. Schema `trimtab.compare/1`."""

from __future__ import annotations

import msgspec

from trimtab.bench.comparing.judge import Judged
from trimtab.bench.comparing.prompts import Prompt
from trimtab.errors import UsageError
from trimtab.messages import msg

SCHEMA = "trimtab.compare/1"


class Reply(msgspec.Struct, frozen=True):
    """One answer; seconds from sending. `trouble` is None when it came whole; `failed`: checks not passed."""

    id: str
    repeat: int
    text: str = ""
    trouble: str | None = None
    finish_reason: str | None = None
    ttft_s: float | None = None  # None of an answer that was not streamed
    e2e_s: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int = 0
    counted: bool = True  # by the server; else its chunks were counted
    chunks: int = 0
    failed: tuple[str, ...] = ()

    @property
    def tpot_s(self) -> float | None:
        """Seconds per token after the first."""
        if self.ttft_s is None or self.e2e_s is None or self.completion_tokens < 2:
            return None
        return (self.e2e_s - self.ttft_s) / (self.completion_tokens - 1)

    @property
    def tokens_s(self) -> float | None:
        """Tokens a second of this answer alone."""
        return self.completion_tokens / self.e2e_s if self.e2e_s and self.completion_tokens else None


class Price(msgspec.Struct, frozen=True):
    """Money for a million tokens."""

    prompt: float
    completion: float


class Side(msgspec.Struct, frozen=True):
    """One back end and its answers. `notes`: what does not fit, and of how many answers."""

    url: str
    model: str
    started: str
    replies: tuple[Reply, ...]
    engine: str | None = None
    price: Price | None = None
    notes: dict[str, int] = {}

    @property
    def whole(self) -> list[Reply]:
        return [reply for reply in self.replies if reply.trouble is None]

    @property
    def cost(self) -> float | None:
        """Of all answers, None where a price or the server's count of a prompt is not known."""
        if self.price is None or any(reply.prompt_tokens is None for reply in self.whole):
            return None
        prompt = sum(reply.prompt_tokens or 0 for reply in self.whole)
        completion = sum(reply.completion_tokens for reply in self.whole)
        return (prompt * self.price.prompt + completion * self.price.completion) / 1e6


class Comparison(msgspec.Struct, frozen=True):
    """Two sides, or one alone that a later run is to be compared with."""

    prompts: tuple[Prompt, ...]
    seed: int
    repeats: int
    max_tokens: int
    a: Side
    b: Side | None = None
    judge: str | None = None
    judged: tuple[Judged, ...] = ()
    interrupted: bool = False
    order: tuple[str, ...] = ()  # as they were asked: "prompt/repeat ab"
    schema: str = SCHEMA

    @property
    def pairs(self) -> list[tuple[Reply, Reply]]:
        """Whole answers of both to the same prompt in the same repeat."""
        if self.b is None:
            return []
        others = {(reply.id, reply.repeat): reply for reply in self.b.whole}
        return [(r, others[r.id, r.repeat]) for r in self.a.whole if (r.id, r.repeat) in others]


_decoder = msgspec.json.Decoder(Comparison)


def read_saved(text: bytes, which: str, name: str) -> tuple[Comparison, Side]:
    """The run in a file of `compare --json` and its side `which` ("a", "b", "": the only one). UsageError: no such."""
    try:
        run = _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        run = None
        reason = str(error)
    if run is None or run.schema != SCHEMA:
        raise UsageError(
            msg("{file} holds no run of `trimtab compare --json`: {reason}",
                file=name, reason=reason if run is None else run.schema),
            hint=msg("Make one with: trimtab compare --a URL,MODEL --json > FILE.json"),
        )  # fmt: skip
    if not which and run.b is not None:
        raise UsageError(
            msg("{file} holds two sides", file=name), hint=msg("Say which: {file},a or {file},b.", file=name)
        )
    side = run.b if which == "b" else run.a
    if side is None:
        raise UsageError(msg("{file} has no side b", file=name), hint=msg("Leave out ,b."))
    return run, side
