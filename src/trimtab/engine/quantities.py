"""Numbers as vLLM's flags take them: with decimal (k) and binary (K) suffixes, or left to vLLM."""

from __future__ import annotations

import re

from trimtab.errors import UsageError
from trimtab.messages import msg

# vllm/engine/arg_utils.py, human_readable_int.
_SUFFIXES = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def whole(name: str, text: str) -> int:
    """A whole number as vLLM reads it: "8192", "8k" (8,000), "8K" (8,192), "auto" (-1: vLLM chooses)."""
    if text.lower() in ("auto", "-1"):
        return -1
    found = re.fullmatch(r"(\d{1,18}(?:\.\d{1,18})?)([kmgtKMGT]?)", text.strip())
    if not found:
        raise wrong_value(name, text)
    return int(float(found[1]) * _SUFFIXES.get(found[2], 1))


def counted(text: str) -> int | None:
    """A plain whole number of at most 18 digits, which every arithmetic here can take; None for any other text."""
    digits = text.replace("_", "").strip()
    return int(digits) if re.fullmatch(r"\d{1,18}", digits) else None


def wrong_value(name: str, text: str) -> UsageError:
    """What is raised for a flag's value that is no number."""
    return UsageError(
        msg("--{flag} does not take {value}", flag=name.replace("_", "-"), value=repr(text)),
        hint=msg("Correct the flag in the launch command."),
    )
