"""A configuration -> the back ends and routes that requests go by; what a reload leaves alike keeps its connections."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from trimtab.errors import HostError, UsageError
from trimtab.gateway.addresses import base_of
from trimtab.gateway.config import BackEndConfig, Config, KeySource, ModelConfig
from trimtab.gateway.outbound import Address
from trimtab.gateway.routes import BackEnd, Route, Routes, Target
from trimtab.messages import msg

Stored = Callable[[str], str]  # the provider key that the store keeps under a name


class Assembled(msgspec.Struct, frozen=True):
    """What requests go by now, and what each back end was made from."""

    back_ends: dict[str, BackEnd] = {}
    routes: Routes = Routes({})
    made_from: dict[str, tuple[BackEndConfig, str]] = {}


def assemble(
    config: Config, listed: Mapping[str, tuple[str, ...]], stored: Stored, former: Assembled | None = None
) -> Assembled:
    """`listed`: the models that each back end says it has. A back end that did not change is kept as it is.

    UsageError or HostError when the place of a key does not give one.
    """
    former = former or Assembled()
    back_ends: dict[str, BackEnd] = {}
    made_from: dict[str, tuple[BackEndConfig, str]] = {}
    for name, entry in config.back_ends.items():
        source = made_from[name] = (entry, "" if entry.key is None else secret_of(name, entry.key, stored))
        kept = former.back_ends.get(name) if former.made_from.get(name) == source else None
        back_ends[name] = kept or back_end_of(name, *source)
    for name, gone in former.back_ends.items():
        if back_ends.get(name) is not gone:
            gone.pool.close()
    return Assembled(back_ends, Routes(_routes(config, listed, back_ends)), made_from)


def back_end_of(name: str, entry: BackEndConfig, key: str) -> BackEnd:
    """The back end of one entry."""
    base = base_of(entry.url)
    address = Address(base.host, base.port, ssl.create_default_context() if base.tls else None)
    return BackEnd(name, address, prefix=base.prefix, key=key, weight=entry.weight)


def secret_of(name: str, key: KeySource, stored: Stored) -> str:
    """A provider's key, from where its entry says. UsageError or HostError when there is none; never with the key."""
    if key.env is not None:
        found = os.environ.get(key.env, "").strip()
        if not found:
            raise UsageError(
                msg("the key of {name} is in ${variable}, which is not set", name=name, variable=key.env),
                hint=msg("Set it where the gateway is started."),
            )
        return found
    if key.file is not None:
        try:
            return Path(key.file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise HostError(msg("{file} cannot be read: {reason}", file=key.file, reason=reason)) from error
    return stored(key.stored or "")


def _routes(
    config: Config, listed: Mapping[str, tuple[str, ...]], back_ends: Mapping[str, BackEnd]
) -> dict[str, Route]:
    own: dict[str, list[Target]] = {}
    for name, models in listed.items():
        for model in models if name in back_ends else ():
            own.setdefault(model, []).append(Target(back_ends[name], model))
    found = {model: Route(model, [targets]) for model, targets in own.items()}
    for name in config.models:
        found[name] = Route(name, _levels(name, config.models, own, back_ends))
    return found


def _levels(
    name: str, models: Mapping[str, ModelConfig], own: Mapping[str, list[Target]], back_ends: Mapping[str, BackEnd]
) -> list[list[Target]]:
    """The model's replicas, then each fall-back's and in turn theirs; every model once."""
    levels: list[list[Target]] = []
    seen: set[str] = set()

    def add(model: str) -> None:
        if model in seen:
            return
        seen.add(model)
        entry = models.get(model)
        if entry is None:
            levels.append(own.get(model, []))
            return
        levels.append([Target(back_ends[t.back_end], t.model or model) for t in entry.targets])
        for other in entry.fall_back:
            add(other)

    add(name)
    return [level for level in levels if level]
