"""Which model architectures and quantisation methods each vLLM knows; supported.json is made by scripts/supported."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import msgspec

from trimtab import shipped

Release = tuple[int, ...]


class _File(msgspec.Struct, frozen=True):
    versions: tuple[str, ...]
    architectures: Mapping[str, tuple[str, str]]
    pooling: frozenset[str]
    capability: Mapping[str, tuple[tuple[str, int | None], ...]]


@cache
def _file() -> _File:
    data = shipped.read("trimtab.engine", "supported.json")
    return msgspec.json.decode(data, type=_File)


@cache
def _release(version: str) -> Release:
    import re

    found = re.match(r"v?(\d+(?:\.\d+)*)", version)
    return tuple(int(n) for n in found.group(1).split(".")) if found else ()


def registered(architecture: str, version: str) -> bool | None:
    """Whether this vLLM registers the architecture; None where the releases read do not tell.

    An architecture that no release has is False in all of them, newer ones than the last excepted.
    """
    file, at = _file(), _release(version)
    newest = _release(file.versions[-1])
    span = file.architectures.get(architecture)
    if span is None:
        return False if at <= newest else None
    first, last = (_release(v) for v in span)
    if first <= at <= last:
        return True
    if at < first:
        before = [r for r in map(_release, file.versions) if r < first]
        return False if before and at <= before[-1] else None
    after = [r for r in map(_release, file.versions) if r > last]
    return False if after and after[0] <= at <= newest else None


def first_release(architecture: str) -> str | None:
    """The first release read that registers it."""
    span = _file().architectures.get(architecture)
    return span[0] if span else None


def pooling_only(architecture: str) -> bool:
    """Whether vLLM registers it for embeddings, scores or classes alone, never to generate."""
    return architecture in _file().pooling


def minimum_capability(method: str, version: str) -> int | None:
    """The lowest compute capability (75 for 7.5) that this vLLM takes for a quantisation method.

    Between two releases read the lower of theirs; None where the method is not there or not known.
    """
    file, at = _file(), _release(version)
    changes = file.capability.get(method, ())
    past = [minimum for since, minimum in changes if _release(since) <= at]
    if not past or past[-1] is None:
        return None
    following = [(since, minimum) for since, minimum in changes if _release(since) > at]
    if not following:
        return past[-1]
    since, minimum = following[0]
    between = [r for r in map(_release, file.versions) if at <= r < _release(since)]
    return past[-1] if between or minimum is None else min(past[-1], minimum)


def method_known(method: str, version: str) -> bool | None:
    """Whether this vLLM has the quantisation method; None where the releases read do not tell."""
    file, at = _file(), _release(version)
    if at > _release(file.versions[-1]):
        return None
    releases = [_release(v) for v in file.versions]
    before = [r for r in releases if r <= at]
    after = [r for r in releases if r >= at]
    if not before or not after:
        return None
    there = {_has(method, before[-1]), _has(method, after[0])}
    return there.pop() if len(there) == 1 else None


def _has(method: str, at: Release) -> bool:
    past = [minimum for since, minimum in _file().capability.get(method, ()) if _release(since) <= at]
    return bool(past) and past[-1] is not None
