"""What will be asked of a server: lengths, how many at once, how much they share; no I/O."""

from __future__ import annotations

import re

import msgspec

from trimtab.errors import UsageError
from trimtab.messages import msg

MOST_TOKENS = 1 << 30


class Workload(msgspec.Struct, frozen=True):
    """Requests of one kind. `prompt_tokens` and `output_tokens` are typical; `longest_tokens` is both at their worst.

    `concurrent` requests run at once, or `requests_per_s` arrive; `shared_prefix_tokens` begin every prompt alike.
    """

    prompt_tokens: int = 1024
    output_tokens: int = 256
    concurrent: int = 1
    requests_per_s: float | None = None
    shared_prefix_tokens: int = 0
    longest_tokens: int | None = None
    images_per_request: int = 0

    @property
    def tokens_per_request(self) -> int:
        return self.prompt_tokens + self.output_tokens

    @property
    def longest(self) -> int:
        """The context that must fit: as given, else the typical request."""
        return max(self.longest_tokens or 0, self.tokens_per_request)

    @property
    def tokens_at_once(self) -> int:
        """KV tokens that `concurrent` typical requests hold at their ends; a shared prefix is held once."""
        own = self.tokens_per_request - self.shared_prefix_tokens
        return self.shared_prefix_tokens + self.concurrent * own


_NAMES = {
    "prompt": "prompt_tokens", "input": "prompt_tokens", "in": "prompt_tokens", "output": "output_tokens",
    "out": "output_tokens", "concurrent": "concurrent", "concurrency": "concurrent", "users": "concurrent",
    "rps": "requests_per_s", "prefix": "shared_prefix_tokens", "longest": "longest_tokens", "context": "longest_tokens",
    "images": "images_per_request",
}  # fmt: skip
_HINT = msg("Write it like prompt=2000,output=500,concurrent=32.")


def parse_workload(spec: str) -> Workload:
    """Read "prompt=2k,output=500,concurrent=32,rps=4,prefix=1k,longest=32k". UsageError names the wrong part."""
    values: dict[str, int | float] = {}
    for part in filter(None, (p.strip() for p in spec.split(","))):
        name, sep, text = (piece.strip() for piece in part.partition("="))
        field = _NAMES.get(name.lower())
        if not sep or field is None:
            raise UsageError(msg("the workload has no part {part}", part=repr(part)), hint=_HINT)
        if field in values:
            raise UsageError(msg("the workload gives {name} twice", name=name), hint=_HINT)
        values[field] = _number(part, text, whole=field != "requests_per_s")
    found = Workload(**values)  # type: ignore[arg-type]
    if found.shared_prefix_tokens > found.prompt_tokens:
        raise UsageError(
            msg("the shared prefix of {prefix:,} tokens is longer than the prompt of {prompt:,}",
                prefix=found.shared_prefix_tokens, prompt=found.prompt_tokens), hint=_HINT,
        )  # fmt: skip
    return found


def _number(part: str, text: str, *, whole: bool) -> int | float:
    found = re.fullmatch(r"(\d{1,12}(?:\.\d{1,6})?)\s*([kKmM]?)", text)
    scale = {"": 1, "k": 1000, "m": 1_000_000}[found.group(2).lower()] if found else 0
    value = float(found.group(1)) * scale if found else 0.0
    if not 0 < value <= MOST_TOKENS or (whole and not value.is_integer()):
        raise UsageError(msg("the workload's {part} is not a usable number", part=repr(part)), hint=_HINT)
    return int(value) if whole else value
