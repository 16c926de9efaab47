"""Models: what each name leads to, which endpoints it may be asked for, and how much context it has."""

from __future__ import annotations

import time

import msgspec

from trimtab.console.asked import Asked, House
from trimtab.gateway.paths import ALL
from trimtab.gateway.routes import Route, Target

_CONTEXT = ("max_model_len", "context_length", "context_window", "max_input_tokens")  # as back ends call it


class Replica(msgspec.Struct, frozen=True):
    """One target: the id that the model goes by there, and whether it may be asked now."""

    back_end: str
    model: str
    weight: float
    ready: bool


class FallBack(msgspec.Struct, frozen=True):
    """What is asked when no replica answers."""

    model: str
    replicas: tuple[Replica, ...]


class Model(msgspec.Struct, frozen=True):
    """One name. `context` in tokens, None where no back end tells it."""

    name: str
    replicas: tuple[Replica, ...]
    fall_back: tuple[FallBack, ...]
    endpoints: tuple[str, ...]
    context: int | None
    prefix_affine: bool
    priced: bool


class Models(msgspec.Struct, frozen=True):
    """The page."""

    models: tuple[Model, ...]


def show(house: House, asked: Asked) -> Models:
    """Every name that is served."""
    found = [(name, house.routes.find(name)) for name in house.routes.names]
    return Models(tuple(_model(house, name, route) for name, route in found if route is not None))


def _model(house: House, name: str, route: Route) -> Model:
    told = house.routes.entries.get(name, {})
    context = next((n for field in _CONTEXT if isinstance(n := told.get(field), int)), None)
    levels = [tuple(_replica(target) for target in level) for level in route.levels]
    config = house.config.models.get(name)
    fall_back = zip(route.levels[1:], levels[1:], strict=True)
    return Model(
        name, levels[0] if levels else (),
        tuple(FallBack(level[0].name, found) for level, found in fall_back if level),
        tuple(served.name for served in ALL if route.takes(served, house.routes.between)), context, route.affine,
        config is not None and config.price is not None,
    )  # fmt: skip


def _replica(target: Target) -> Replica:
    return Replica(target.back_end.name, target.model, target.weight, target.back_end.ready(time.monotonic()))
