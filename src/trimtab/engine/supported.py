"""Which architectures, quantisation methods and Transformers each vLLM knows (supported.json, by scripts/supported)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

import msgspec

from trimtab import shipped

Release = tuple[int, ...]


class _File(msgspec.Struct, frozen=True):
    versions: tuple[str, ...]
    architectures: Mapping[str, tuple[str, str]]
    pooling: frozenset[str]
    capability: Mapping[str, tuple[tuple[str, int | None], ...]]
    transformers: tuple[tuple[str, str, str | None], ...]
    needs_transformers: Mapping[str, tuple[tuple[str, str | None], ...]]
    examples: Mapping[str, str]


@cache
def _file() -> _File:
    data = shipped.read("trimtab.engine", "supported.json")
    return msgspec.json.decode(data, type=_File)


class _Dates(msgspec.Struct, frozen=True):
    """Days on which releases were published: the dates of the files in their wheels (released.json, by hand)."""

    vllm: Mapping[str, str]
    transformers: Mapping[str, str]


@cache
def _dates() -> _Dates:
    data = shipped.read("trimtab.engine", "released.json")
    return msgspec.json.decode(data, type=_Dates)


@cache
def _release(version: str) -> Release:
    import re

    found = re.match(r"v?(\d+(?:\.\d+)*)", version)
    return tuple(int(n) for n in found.group(1).split(".")) if found else ()


def patches(version: str) -> tuple[str, ...]:
    """The releases that a version may mean: of "0.10" all its patches that were read, of "0.10.1" itself."""
    at = _release(version)
    found = [v for v in _file().versions if len(at) == 2 and _release(v)[:2] == at]
    return tuple(found) or (version,)


def registered(architecture: str, version: str) -> bool | None:
    """Whether this vLLM registers the architecture ("0.10": its last patch); None where the releases do not tell.

    An architecture that no release has is False in all of them, newer ones than the last excepted.
    """
    file, at = _file(), _release(patches(version)[-1])
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


def needed_transformers(architecture: str, version: str) -> str | None:
    """The least Transformers that this vLLM's own tests want for the architecture; None where they want none."""
    changes = _file().needs_transformers.get(architecture, ())
    at = _release(patches(version)[-1])
    past = [least for since, least in changes if _release(since) <= at]
    return past[-1] if past else next((least for _, least in changes), None)


def unregistered(architecture: str, version: str) -> bool:
    """Whether this vLLM is known not to register an architecture that a later one does."""
    first = first_release(architecture)
    return first is not None and all(
        registered(architecture, patch) is False and _release(first) > _release(patch) for patch in patches(version)
    )


def published_later(transformers: str, version: str) -> bool:
    """Whether this vLLM came out before the Transformers: an installation of its time has an older one."""
    known = {_release(v): day for v, day in _dates().vllm.items()}
    mine = known.get(_release(patches(version)[-1]))
    wanted = _release(transformers)
    theirs = [day for v, day in _dates().transformers.items() if _release(v) >= wanted]
    return mine is not None and bool(theirs) and theirs[0] > mine


def asked_transformers(version: str) -> tuple[str, str | None]:
    """The Transformers that this vLLM asks for when it is installed: (at least, below)."""
    at = _release(patches(version)[-1])
    past = [(least, below) for since, least, below in _file().transformers if _release(since) <= at]
    return past[-1] if past else ("0", None)


def examples() -> Mapping[str, str]:
    """Id -> architecture of the models that vLLM's own tests serve."""
    return dict(_file().examples)


@cache
def _examples() -> Mapping[str, str]:
    """Ids in lower case, with and without their organisation -> architecture."""
    found = {name.lower(): architecture for name, architecture in _file().examples.items()}
    short: dict[str, set[str]] = {}
    for name, architecture in found.items():
        short.setdefault(name.rpartition("/")[2], set()).add(architecture)
    return found | {name: kinds.pop() for name, kinds in short.items() if len(kinds) == 1}


def example_architecture(names: Iterable[str]) -> str | None:
    """The architecture of the first of these ids (in lower case) that vLLM's own tests serve."""
    return next((_examples()[name] for name in names if name in _examples()), None)


def pooling_only(architecture: str) -> bool:
    """Whether vLLM registers it for embeddings, scores or classes alone, never to generate."""
    return architecture in _file().pooling


def minimum_capability(method: str, version: str) -> int | None:
    """The lowest compute capability (75 for 7.5) that this vLLM takes for a quantisation method.

    Between two releases read the lower of theirs; None where the method is not there or not known.
    """
    file, at = _file(), _release(patches(version)[-1])
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


KERNELS = {
    "awq": ("awq", "awq_marlin", "auto_awq"),
    "gptq": ("gptq", "gptq_marlin", "auto_gptq"),
    "auto-round": ("auto-round", "inc"),
    "mxfp4": ("mxfp4", "gpt_oss_mxfp4"),
}
"""A checkpoint's method -> the methods among which vLLM chooses by the GPU; the lowest minimum counts."""


def least_capability(method: str, version: str, *, asked: bool = False) -> int:
    """The compute capability (75 for 7.5) that a method needs in this vLLM, 0 where none is known.

    `asked`: the launch names the method (--quantization), so that vLLM chooses no other kernel.
    """
    names = (method,) if asked else KERNELS.get(method, (method,))
    found = [m for m in (minimum_capability(name, version) for name in names) if m is not None]
    return min(found, default=0)


OWN_TYPES = frozenset(
    {"baichuan", "bailing_moe", "chatglm", "internlm2", "internvl_chat", "kimi_k2", "kimi_vl", "minimax_text_01"}
)
"""Model types that no Transformers read (4.57.6, 5.24.0) has, and whose checkpoints bring their own config or tokenizer
classes."""
LOWEST_CAPABILITY: tuple[tuple[Release, int], ...] = (((0, 20), 75), ((0,), 70))
"""From which release on vLLM's CUDA wheels and images are built for which capability and newer ones: 7.0 from 0.2.0's
setup.py to 0.19's docker/Dockerfile (`torch_cuda_arch_list`) and installation page, 7.5 in those of 0.20.0."""


def lowest_capability(version: str) -> int:
    """The lowest compute capability (75 for 7.5) that this vLLM's CUDA wheels and images are built for."""
    at = _release(patches(version)[-1])
    return next(least for since, least in LOWEST_CAPABILITY if at >= since or since == (0,))


def newest_for(capability: int) -> str | None:
    """The newest release whose wheels are built for cards of this compute capability; None where none is."""
    return next((v for v in reversed(_file().versions) if lowest_capability(v) <= capability), None)


def method_known(method: str, version: str) -> bool | None:
    """Whether this vLLM has the quantisation method; None where the releases read do not tell."""
    file, at = _file(), _release(patches(version)[-1])
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
