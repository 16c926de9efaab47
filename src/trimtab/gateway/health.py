"""Looks after the back ends: asks each whether it is up and which models it has, and tells the fleet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec

from trimtab.gateway.asking import ask
from trimtab.gateway.config import BackEndConfig
from trimtab.gateway.fleet import Fleet, Listed
from trimtab.gateway.routes import BackEnd, Routes

MISSES = 2  # in a row, after which a back end is asked for nothing until it answers again
LISTED_EVERY_S = 30.0  # between two looks at the models
WITHIN_S = 5.0  # for an answer
TICK_S = 0.25


class _Models(msgspec.Struct):
    data: list[dict[str, msgspec.Raw]]


_models = msgspec.json.Decoder(_Models)


class Health:
    """One look at each back end now and then; `changed` is given the routes when other models are there."""

    def __init__(self, fleet: Fleet, changed: Callable[[Routes], None]) -> None:
        self._fleet, self._changed = fleet, changed
        self._looks: dict[str, asyncio.Task[None]] = {}
        self._due: dict[str, float] = {}  # by back end, monotonic seconds
        self._listed: dict[str, float] = {}
        self._misses: dict[str, int] = {}

    async def run(self) -> None:
        """Look until cancelled."""
        try:
            while True:
                self._tick(time.monotonic())
                await asyncio.sleep(TICK_S)
        finally:
            for look in self._looks.values():
                look.cancel()

    def _tick(self, now: float) -> None:
        for name in [n for n in self._due if n not in self._fleet.back_ends]:
            for known in (self._due, self._listed, self._misses):
                known.pop(name, None)
        for name, back_end in self._fleet.back_ends.items():
            look = self._looks.get(name)
            if now >= self._due.get(name, 0.0) and (look is None or look.done()):
                config = self._fleet.configs[name]
                self._due[name] = now + config.health_every
                self._looks[name] = asyncio.get_running_loop().create_task(self._look(name, back_end, config))

    async def _look(self, name: str, back_end: BackEnd, config: BackEndConfig) -> None:
        was_healthy = back_end.healthy
        path = config.health or ("/health" if config.kind == "vllm" else None)
        if path is not None:
            self._judge(name, back_end, await _is_up(back_end, path))
        now = time.monotonic()
        came_back = back_end.healthy and not was_healthy
        if back_end.healthy and (came_back or now >= self._listed.get(name, 0.0)):
            listed = await _list(back_end)
            if listed is not None:
                self._listed[name] = now + LISTED_EVERY_S
                if self._fleet.learn(name, listed):
                    self._changed(self._fleet.routes)

    def _judge(self, name: str, back_end: BackEnd, up: bool) -> None:
        self._misses[name] = 0 if up else self._misses.get(name, 0) + 1
        if up:
            back_end.healthy = True
        elif self._misses[name] >= MISSES:
            back_end.healthy = False


async def _is_up(back_end: BackEnd, path: str) -> bool:
    try:
        status, _ = await ask(back_end, back_end.bare + path.encode(), WITHIN_S)
    except (OSError, TimeoutError, ValueError):
        return False
    return 200 <= status < 300


async def _list(back_end: BackEnd) -> Listed | None:
    """The entries of its /v1/models by id; None when it does not tell."""
    try:
        status, body = await ask(back_end, back_end.base + b"/models", WITHIN_S)
        if status != 200:
            return None
        entries = [{k: _plain(v) for k, v in entry.items()} for entry in _models.decode(body).data]
    except (OSError, TimeoutError, ValueError):  # msgspec's errors are ValueErrors
        return None
    return {name: entry for entry in entries if isinstance(name := entry.get("id"), str)}


def _plain(value: msgspec.Raw) -> object:
    """Words and numbers; of larger things nothing is read."""
    return None if bytes(value)[:1] in (b"{", b"[") else msgspec.json.decode(value)
