"""What is asked of a server and when: arrivals and lengths, drawn from a seed. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count
from math import log
from typing import Literal

import msgspec

from trimtab.errors import UsageError
from trimtab.messages import msg

MAX_TOKENS = 10_000_000
LengthKind = Literal["fixed", "uniform", "lognormal"]


class Lengths(msgspec.Struct, frozen=True):
    """Tokens of a prompt or of an answer. `fixed`: low; `uniform`: low to high; `lognormal`: median low, sigma."""

    kind: LengthKind
    low: int
    high: int = 0
    sigma: float = 0.0

    def draw(self, source: random.Random) -> int:
        """One length, at least 1."""
        if self.kind == "fixed":
            return self.low
        if self.kind == "uniform":
            return source.randint(self.low, self.high)
        return max(1, min(MAX_TOKENS, round(source.lognormvariate(log(self.low), self.sigma))))

    def __str__(self) -> str:
        if self.kind == "fixed":
            return str(self.low)
        return f"{self.low}:{self.high}" if self.kind == "uniform" else f"lognormal:{self.low}:{self.sigma:g}"


def read_lengths(text: str) -> Lengths:
    """Read `512`, `128:1024` or `lognormal:512:0.6`; UsageError for anything else."""
    parts = text.strip().split(":")
    try:
        if len(parts) == 1:
            found = Lengths("fixed", int(parts[0]))
        elif len(parts) == 2:
            found = Lengths("uniform", int(parts[0]), int(parts[1]))
        elif len(parts) == 3 and parts[0] == "lognormal":
            found = Lengths("lognormal", int(parts[1]), sigma=float(parts[2]))
        else:
            raise ValueError
    except ValueError:
        raise _no_length(text) from None
    ordered = found.kind != "uniform" or found.low <= found.high <= MAX_TOKENS
    if not 1 <= found.low <= MAX_TOKENS or not ordered or not 0 <= found.sigma <= 3:
        raise _no_length(text)
    return found


def _no_length(text: str) -> UsageError:
    return UsageError(
        msg("{text!r} is no length in tokens", text=text),
        hint=msg("Write 512, or 128:1024 (evenly between), or lognormal:512:0.6 (median, sigma of the logarithm)."),
    )


class Shape(msgspec.Struct, frozen=True):
    """What one request looks like."""

    input: Lengths
    output: Lengths
    prefix_tokens: int = 0  # shared by all requests of one prefix
    prefixes: int = 1  # how many different ones there are
    turns: int = 1  # of one conversation, each with the answers before it
    images: int = 0
    image_pixels: int = 512  # of either side


class Wanted(msgspec.Struct, frozen=True):
    """One request to be made: `at_s` after the start, None: once a place is free; `text`: a given prompt."""

    id: int
    input_tokens: int
    output_tokens: int
    at_s: float | None = None
    prefix: int = 0
    conversation: int = 0
    turn: int = 0
    text: str | None = None


class Load(msgspec.Struct, frozen=True):
    """How requests arrive: `rate` a second (open loop), else `concurrency` at once (closed loop)."""

    concurrency: int = 8
    rate: float | None = None
    arrivals: Literal["poisson", "constant"] = "poisson"
    requests: int | None = None
    duration_s: float | None = None  # no request is begun after it
    warmup: int = 0  # requests before the clock starts, not counted


def draw(shape: Shape, load: Load, seed: int) -> Iterator[Wanted]:
    """Requests without end; the same for the same seed."""
    source = random.Random(seed)
    at = 0.0
    for number in count():
        if load.rate is not None and number:
            at += source.expovariate(load.rate) if load.arrivals == "poisson" else 1 / load.rate
        yield Wanted(
            number,
            shape.input.draw(source),
            shape.output.draw(source),
            at if load.rate is not None else None,
            source.randrange(shape.prefixes),
            number // shape.turns,
            number % shape.turns,
        )


class _Line(msgspec.Struct):
    """A line of a trace, under the names that are in use: ours, Mooncake's (milliseconds), vLLM's custom data set."""

    at: float | None = None
    timestamp: float | None = None
    prompt: str | None = None
    input_tokens: int | None = None
    input_length: int | None = None
    output_tokens: int | None = None
    output_length: int | None = None


_line = msgspec.json.Decoder(_Line)


def read_trace(text: bytes, output: Lengths, seed: int) -> list[Wanted]:
    """Requests of a JSON Lines trace in order of time; lengths of answers that it does not state are drawn.

    A line holds `at` (s) or `timestamp` (ms), `prompt` or `input_tokens`/`input_length`, and may hold
    `output_tokens`/`output_length`. UsageError names the line that is wrong.
    """
    source = random.Random(seed)
    found: list[Wanted] = []
    for number, raw in enumerate(text.splitlines(), 1):
        if not raw.strip():
            continue
        try:
            line = _line.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UsageError(
                msg("line {number} of the trace: {reason}", number=number, reason=str(error)), hint=_TRACE_HINT
            ) from None
        tokens = line.input_tokens or line.input_length or 0
        at = line.at if line.at is not None else line.timestamp / 1000 if line.timestamp is not None else None
        wanted = line.output_tokens or line.output_length or output.draw(source)
        if (line.prompt is None and tokens < 1) or wanted < 1 or (at is not None and not 0 <= at < 1e9):
            raise UsageError(
                msg("line {number} of the trace has no prompt, or a time or length below zero", number=number),
                hint=_TRACE_HINT,
            )
        found.append(Wanted(0, tokens, wanted, at, conversation=number, text=line.prompt))
    if not found:
        raise UsageError(msg("the trace holds no request"), hint=_TRACE_HINT)
    timed = all(w.at_s is not None for w in found)
    if not timed and any(w.at_s is not None for w in found):
        raise UsageError(msg("some lines of the trace have a time and some have none"), hint=_TRACE_HINT)
    found.sort(key=lambda w: w.at_s or 0.0)
    first = found[0].at_s or 0.0
    return [
        msgspec.structs.replace(w, id=number, at_s=w.at_s - first if w.at_s is not None else None)
        for number, w in enumerate(found)
    ]


_TRACE_HINT = msg(
    'A line is {{"at": 1.5, "input_tokens": 800, "output_tokens": 120}}, or "prompt" in place of a length.'
)
