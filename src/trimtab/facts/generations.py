"""What people call a GPU by when they do not name the card: "Turing", "sm_75", "compute capability < 8.9", "gfx942".

It settles the compute capability alone; how much memory the card has stays unknown.
"""

from __future__ import annotations

import re

import msgspec

NAMED: dict[str, str] = {
    "maxwell": "5.0", "pascal": "6.0", "volta": "7.0", "turing": "7.5", "ampere": "8.0", "ada": "8.9", "hopper": "9.0",
    "blackwell": "10.0",
}  # fmt: skip
"""An architecture's lowest compute capability among data-centre cards (NVIDIA's CUDA GPUs page)."""
CAPABILITIES = (5.0, 5.2, 6.0, 6.1, 7.0, 7.5, 8.0, 8.6, 8.7, 8.9, 9.0, 10.0, 10.3, 11.0, 12.0, 12.1)
"""Every compute capability that a card has had, for what a bound means ("below 8.9": at most 8.7)."""

_OLDER = r"<|below|under|less than|lower than|older than|before|pre[- ]?"
_AT_LEAST = r"<=|>=|>|at least|from|up to"
_NUMBER = re.compile(
    rf"\b(?:cuda\s+)?(?:compute[ _]capability|compute|capability|cc|sm)[ _:=-]*(?:is|of)?\s*"
    rf"(?P<bound>{_OLDER}|{_AT_LEAST})?\s*"
    r"(?:(?P<dotted>\d{1,2}\.\d)|(?P<plain>\d{2,3}))[af]?\b\+?",
    re.IGNORECASE,
)
_WORD = re.compile(
    rf"(?:\b(?P<bound>older than|before|pre)[- ]?)?\b(?P<word>{'|'.join(NAMED)})\b(?:[- ]lovelace\b)?", re.IGNORECASE
)
_ROCM = re.compile(r"\bgfx[0-9a-f]{3,4}\b", re.IGNORECASE)


class Generation(msgspec.Struct, frozen=True):
    """A kind of card. `capability` as in Gpu ("7.5", "gfx942"); of a bound, the newest that it admits."""

    name: str
    vendor: str
    capability: str


def read_generation(text: str) -> tuple[Generation | None, str]:
    """The generation that the text names, and what else it says. A number counts before an architecture's name."""
    rocm = _ROCM.search(text)
    if rocm is not None:
        name = rocm.group().lower()
        return Generation(name, "AMD", name), _without(text, rocm)
    number, word = _NUMBER.search(text), _WORD.search(text)
    found = number or word
    if found is None:
        return None, text
    rest = _without(text, found)
    bound = (found["bound"] or "").lower()
    capability = _digits(number) if number else NAMED[found["word"].lower()]
    if number is not None:
        named = _WORD.search(rest)
        rest = _without(rest, named) if named else rest
    if bound and re.fullmatch(_OLDER, bound):
        older = [c for c in CAPABILITIES if c < float(capability)]
        return Generation(f"GPU older than {capability}", "NVIDIA", f"{older[-1] if older else 0.0:.1f}"), rest
    name = "" if number else found["word"].capitalize() + " "
    return Generation(f"{name}GPU ({capability})", "NVIDIA", capability), rest


def _digits(found: re.Match[str]) -> str:
    """ "7.5" of "75" and of "7.5", "12.0" of "120"."""
    return found["dotted"] or f"{int(found['plain'][:-1])}.{found['plain'][-1]}"


def _without(text: str, found: re.Match[str]) -> str:
    return f"{text[: found.start()]} {text[found.end() :]}"
