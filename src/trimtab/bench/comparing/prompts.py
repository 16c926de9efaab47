"""The prompts of a comparison: a JSON Lines file, or the ones that come with Trimtab."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from trimtab import shipped
from trimtab.errors import UsageError
from trimtab.messages import msg

DEFAULT_MAX_TOKENS = 256
_HINT = msg('A line is {{"prompt": "..."}} and may hold id, messages, max_tokens, exact, regex, json_schema.')


class Prompt(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One question; `messages` in place of `prompt` for a conversation. The rest checks what comes back."""

    id: str = ""
    prompt: str = ""
    messages: tuple[dict[str, Any], ...] = ()
    max_tokens: int = 0  # 0: what the run says
    exact: str | None = None  # the whole answer, blanks at both ends aside
    regex: str | None = None  # found anywhere in it
    json_schema: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """What is asked, as one text."""
        return self.prompt or "\n".join(str(message.get("content", "")) for message in self.messages)

    @property
    def checked(self) -> bool:
        return self.exact is not None or self.regex is not None or self.json_schema is not None


_line = msgspec.json.Decoder(Prompt)


def shipped_prompts() -> tuple[Prompt, ...]:
    """The ones that come with Trimtab: short, of several kinds, some with a check."""
    return read_prompts(shipped.read(__name__, "prompts.jsonl"))


def read_prompts(text: bytes) -> tuple[Prompt, ...]:
    """The prompts of a file, each with an id of its own. UsageError names the line that is wrong."""
    found: list[Prompt] = []
    seen: set[str] = set()
    for number, raw in enumerate(text.splitlines(), 1):
        if not raw.strip():
            continue
        try:
            one = _line.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _wrong(number, str(error)) from None
        one = msgspec.structs.replace(one, id=one.id or str(number))
        if one.id in seen:
            raise _wrong(number, f"id {one.id!r} twice")
        seen.add(one.id)
        _check(one, number)
        found.append(one)
    if not found:
        raise UsageError(msg("the file of prompts holds none"), hint=_HINT)
    return tuple(found)


def _check(one: Prompt, number: int) -> None:
    if bool(one.prompt) == bool(one.messages):
        raise _wrong(number, "either prompt or messages")
    if not 0 <= one.max_tokens <= 1_000_000:
        raise _wrong(number, f"max_tokens {one.max_tokens}")
    if one.regex is not None:
        try:
            re.compile(one.regex)
        except re.error as error:
            raise _wrong(number, f"regex: {error}") from None


def _wrong(number: int, reason: str) -> UsageError:
    return UsageError(msg("line {number} of the prompts: {reason}", number=number, reason=reason), hint=_HINT)
