"""Typed reading of a config's keys: each wrong value becomes a ModelError that names the key and the value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.errors import ModelError
from trimtab.messages import msg

LARGEST = 1 << 40
"""No key of a model's config is larger (the largest known vocabularies, contexts and widths are below 2^31)."""

BESIDE = "beside the decoder: "
"""How a missing fact begins that leaves heads, layers and experts known: a tower's weights, say."""


class Keys:
    """A view of one config mapping. Several names for the same fact are tried in order; null counts as absent.

    `defaults` are those of the model type's config class, for keys that the config leaves out; a null stays null.
    Every required fact that is absent is named in `missing`, every default that was taken on trust in `assumed`.
    """

    def __init__(
        self,
        config: object,
        missing: list[str] | None = None,
        assumed: list[str] | None = None,
        *,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(config, Mapping):
            raise ModelError(
                msg("the model's config is a {kind}, not a JSON object", kind=type(config).__name__),
                hint=msg("Pass the model's config.json."),
            )
        self.given: Mapping[str, Any] = config
        self.config: Mapping[str, Any] = {**defaults, **config} if defaults else config
        self.missing: list[str] = missing if missing is not None else []
        self.assumed: list[str] = assumed if assumed is not None else []

    def with_defaults(self, defaults: Mapping[str, Any]) -> Keys:
        return Keys(self.given, self.missing, self.assumed, defaults=defaults)

    def sub(self, *names: str) -> Keys | None:
        """The first nested object of these names, sharing the lists of missing and assumed facts."""
        for name in names:
            value = self.config.get(name)
            if isinstance(value, Mapping) and value:
                return Keys(value, self.missing, self.assumed)
        return None

    def objects(self, *names: str) -> None:
        """ModelError where one of these is given and is no object."""
        for name in names:
            value = self.config.get(name)
            if value is not None and not isinstance(value, Mapping):
                raise _wrong(name, value)

    def has(self, name: str) -> bool:
        return self.config.get(name) is not None

    def integer(self, *names: str, low: int = 0, high: int = LARGEST) -> int | None:
        """The first of these keys that is given, else has a default, as a whole number between `low` and `high`."""
        for source in (self.given, self.config):
            for name in names:
                value = source.get(name)
                if value is not None:
                    return _whole(name, value, low, high)
        return None

    def required(self, *names: str, low: int = 1, high: int = LARGEST) -> int:
        """Like `integer`, but an absent key is named in `missing` and reads as 0; a null one is an error."""
        found = self.integer(*names, low=low, high=high)
        if found is not None and not any(name in self.given for name in names):
            self.assumed.append(f"{names[0]} = {found} (the config class's default)")
        if found is not None:
            return found
        for name in names:
            if name in self.config:
                raise _wrong(name, None)
        self.missing.append(names[0])
        return 0

    def defaulted(self, *names: str, default: int, low: int = 0, high: int = LARGEST) -> int:
        """Like `integer`, with the default that the architecture's own config class has."""
        found = self.integer(*names, low=low, high=high)
        return default if found is None else found

    def number(self, *names: str, low: float = 0, high: float = LARGEST) -> float | None:
        for name in names:
            value = self.config.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
                raise _wrong(name, value)
            return float(value)
        return None

    def flag(self, *names: str, default: bool = False) -> bool:
        for name in names:
            value = self.config.get(name)
            if value is None:
                continue
            if not isinstance(value, bool):
                raise _wrong(name, value)
            return value
        return default

    def text(self, *names: str, default: str = "") -> str:
        for name in names:
            value = self.config.get(name)
            if value is None:
                continue
            if not isinstance(value, str):
                raise _wrong(name, value)
            return value
        return default

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.config.get(name)
        if value is None:
            return ()
        if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
            raise _wrong(name, value)
        return tuple(value)

    def integers(self, name: str, *, high: int = LARGEST) -> tuple[int, ...]:
        value = self.config.get(name)
        if value is None:
            return ()
        if not isinstance(value, list | tuple):
            raise _wrong(name, value)
        return tuple(_whole(name, v, 0, high) for v in value)


def _whole(name: str, value: object, low: int, high: int) -> int:
    if isinstance(value, float) and value.is_integer() and abs(value) <= LARGEST:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise _wrong(name, value)
    return value


def _wrong(name: str, value: object) -> ModelError:
    shown = repr(value)
    return ModelError(
        msg(
            "the model's config has {name} = {value}",
            name=name,
            value=shown if len(shown) <= 80 else shown[:77] + "...",
        ),
        hint=msg("Compare config.json with the one on the model's page; a damaged download looks like this."),
    )
