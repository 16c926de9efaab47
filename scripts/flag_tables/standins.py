"""What the sliced vLLM source sees in place of packages that are not its own: enough for definitions."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any


class Anything(type):
    """Metaclass of stand-ins: every attribute, call and subscript of one is another, so definitions can name them."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        made = Anything(name, (Standin,), {"__module__": f"{cls.__module__}.{cls.__name__}"})
        setattr(cls, name, made)
        return made

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and (callable(args[0]) and not isinstance(args[0], Anything)):
            return args[0]  # used as a decorator
        return Anything(cls.__name__, (Standin,), {})

    def __getitem__(cls, item: Any) -> Any:
        return cls

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __bool__(cls) -> bool:
        return False

    def __len__(cls) -> int:
        return 0

    def __contains__(cls, item: Any) -> bool:
        return False

    def __lt__(cls, other: Any) -> bool:
        return False

    __gt__ = __le__ = __ge__ = __lt__


class Standin(metaclass=Anything):
    """A thing of another package."""


def foreign(name: str) -> Any:
    """The module `name` that is not vLLM's: the standard library as it is, all else a stand-in."""
    top = name.split(".")[0]
    if name in _SPECIAL:
        return _SPECIAL[name]
    if top in sys.stdlib_module_names or top == "typing_extensions":
        return importlib.import_module(name)
    if top not in _FOREIGN:
        _FOREIGN[top] = Anything(top, (Standin,), {"__module__": ""})
    found: Any = _FOREIGN[top]
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def dataclass(cls: type | None = None, **options: Any) -> Any:
    """Stands for pydantic's dataclass: like the standard one, but a mutable default is allowed."""
    kept = {k: v for k, v in options.items() if k in ("init", "repr", "eq", "order", "frozen", "kw_only", "slots")}

    def decorate(target: type) -> type:
        for name, kind in inspect.get_annotations(target).items():
            if "ClassVar" in str(kind):
                continue
            value = target.__dict__.get(name)
            if value is not None and not isinstance(value, dataclasses.Field) and value.__class__.__hash__ is None:
                setattr(target, name, dataclasses.field(default_factory=lambda value=value: value))
        return dataclasses.dataclass(**kept)(target)

    return decorate if cls is None else decorate(cls)


def field(default: Any = dataclasses.MISSING, **options: Any) -> Any:
    """Stands for pydantic's Field: only its default matters here."""
    if default is ...:
        default = dataclasses.MISSING
    factory = options.get("default_factory", dataclasses.MISSING)
    kept = {k: v for k, v in options.items() if k in ("init", "kw_only") and v is not None}
    if factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=factory, **kept)
    return dataclasses.field(default=default, **kept)


def decorator(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """Stands for validators: gives the function back."""
    return lambda target: target


class FieldInfo:
    """Never made: `field` gives the standard library's."""


class _Inner:
    def __class_getitem__(cls, item: Any) -> Any:
        return item


class _Model:
    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__()


def _namespace(name: str, **names: Any) -> Any:
    return Anything(name, (Standin,), {"__module__": "", **names})


_PYDANTIC_DATACLASSES = _namespace("dataclasses", dataclass=staticmethod(dataclass))
_PYDANTIC_FIELDS = _namespace("fields", FieldInfo=FieldInfo, Field=staticmethod(field))
_PYDANTIC = _namespace(
    "pydantic",
    Field=staticmethod(field),
    field_validator=staticmethod(decorator),
    model_validator=staticmethod(decorator),
    field_serializer=staticmethod(decorator),
    model_serializer=staticmethod(decorator),
    validator=staticmethod(decorator),
    ConfigDict=dict,
    SkipValidation=_Inner,
    BaseModel=_Model,
    dataclasses=_PYDANTIC_DATACLASSES,
    fields=_PYDANTIC_FIELDS,
)
_SPECIAL: dict[str, Any] = {
    "pydantic": _PYDANTIC,
    "pydantic.dataclasses": _PYDANTIC_DATACLASSES,
    "pydantic.fields": _PYDANTIC_FIELDS,
    "regex": re,
    "argparse": argparse,
}
_FOREIGN: dict[str, Any] = {}
