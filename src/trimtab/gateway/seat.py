"""What the gateway lends to an application that another room mounts beside its hot path: the console."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec

from trimtab.gateway.admin import BackEnds
from trimtab.gateway.admission import Key
from trimtab.gateway.config import Config
from trimtab.gateway.front import Front
from trimtab.gateway.mounted import Application, Late, Mounted
from trimtab.gateway.routes import Routes
from trimtab.gateway.setup import Setup
from trimtab.gateway.store.database import Store, open_store


class Seat(msgspec.Struct, frozen=True):
    """`open_store` is called in a thread of the application's own, all else in the loop's thread.

    `admin_key` finds an admin key by its text, or raises Refused; `key` finds one by its id.
    """

    open_store: Callable[[], Store]
    state_dir: Path
    config: Callable[[], Config]
    routes: Callable[[], Routes]
    back_ends: Callable[[], BackEnds]
    in_flight: Callable[[], int]
    admin_key: Callable[[bytes], Key]
    key: Callable[[str], Key | None]


class Lodger(Protocol):
    """The application: ASGI, and an end."""

    application: Application

    def close(self) -> None:
        """The gateway ends."""


Invite = Callable[[Seat], Lodger]


class Lodged:
    """A lodger that its first request brings in."""

    def __init__(self, invite: Invite, seat: Seat) -> None:
        self._invite, self._seat = invite, seat
        self._lodger: Lodger | None = None
        self.mounted = Mounted(Late(self._bring_in))

    def _bring_in(self) -> Application:
        self._lodger = self._invite(self._seat)
        return self._lodger.application

    def close(self) -> None:
        """The gateway ends."""
        if self._lodger is not None:
            self._lodger.close()


def seat_of(setup: Setup, front: Front, config: Callable[[], Config], back_ends: Callable[[], BackEnds]) -> Seat:
    """The seat in one process's gateway."""
    return Seat(
        lambda: open_store(config().store, setup.default_store), setup.state_dir, config, lambda: front.routes,
        back_ends, lambda: len(front.live), front.keys.find_admin, partial(_key, front),
    )  # fmt: skip


def _key(front: Front, id: str) -> Key | None:
    return front.keys.by_id.get(id)
