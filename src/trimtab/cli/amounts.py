"""What the command line says of limits, durations, days and tags, read into values."""

from __future__ import annotations

import math
import re
import time
from calendar import timegm
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import msgspec

from trimtab.errors import UsageError
from trimtab.gateway.limits import Limits
from trimtab.messages import msg

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_AMOUNT = re.compile(r"(\d[\d_]*(?:\.\d+)?)\s*([kKmMgG]?)")
_TIMES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
NONE = ("", "none")


def limits_of(pairs: Iterable[str], before: Limits) -> Limits:
    """`before` with what NAME=VALUE pairs say; a value of none takes a limit away. UsageError naming the pair."""
    fields: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        name = name.replace("-", "_")
        if not equals or name not in Limits.__struct_fields__:
            near = get_close_matches(name, Limits.__struct_fields__, 1)
            raise UsageError(
                msg("{pair} is no limit", pair=repr(pair)),
                hint=msg("Did you mean {near}=VALUE?", near=near[0])
                if near
                else msg("Limits are: {names}.", names=", ".join(Limits.__struct_fields__)),
            )
        fields[name] = _limit(name, value)
    return msgspec.structs.replace(before, **fields)


def _limit(name: str, value: str) -> object:
    if not value:  # most often a variable that is not set: a key for everything is not what was meant
        raise UsageError(
            msg("{name} cannot be {value}", name=name, value=repr(value)),
            hint=msg("To take the limit away write {name}=none.", name=name),
        )
    if value.lower() in NONE:
        return None
    if name in ("models", "endpoints"):
        return tuple(part.strip() for part in value.split(","))
    found = _AMOUNT.fullmatch(value)
    if found is None:
        raise UsageError(
            msg("{name} cannot be {value}", name=name, value=repr(value)),
            hint=msg("Give a number, such as 60, 10k or 2M, or none."),
        )
    amount = float(found[1].replace("_", "")) * _TIMES[found[2].lower()]
    if name.startswith("money"):
        return amount
    if amount != int(amount):
        raise UsageError(
            msg("{name} cannot be {value}", name=name, value=repr(value)), hint=msg("Give a whole number of 1 or more.")
        )
    return int(amount)


def tags_of(pairs: Iterable[str], before: Mapping[str, str]) -> dict[str, str]:
    """`before` with NAME=VALUE pairs; an empty value takes one away."""
    tags = dict(before)
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise UsageError(
                msg("{pair} is no tag", pair=repr(pair)), hint=msg("Give NAME=VALUE, for example --tag team=search.")
            )
        tags[name.strip()] = value.strip()
    return {name: value for name, value in tags.items() if value}


def duration(text: str) -> float:
    """Seconds of 90s, 10m, 24h, 30d, 2w, 1d12h. UsageError for anything else."""
    parts = _DURATION.findall(text.strip())
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        raise UsageError(msg("{text} is no duration", text=repr(text)), hint=msg("Give one such as 10m, 24h or 30d."))
    return math.fsum(float(number) * _UNITS[unit] for number, unit in parts)


def moment(text: str, now: float, sign: int) -> float:
    """The time of a day (its begin, UTC), or so long before (-1) or after (1) now."""
    if _DAY.fullmatch(text.strip()):
        try:
            return float(timegm(time.strptime(text.strip(), "%Y-%m-%d")))
        except ValueError as error:
            raise UsageError(
                msg("{text} is no day", text=repr(text)), hint=msg("Give one such as 2026-11-30.")
            ) from error
    return now + sign * duration(text)
