"""What a page gets and gives: one request's words, the gateway around it, and the record that is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from trimtab.gateway.admin import BackEnds
from trimtab.gateway.config import Config
from trimtab.gateway.routes import Routes
from trimtab.gateway.store.database import Store
from trimtab.messages import Message


class House(msgspec.Struct, frozen=True):
    """The gateway at the moment of the request."""

    store: Store
    back_ends: BackEnds
    routes: Routes
    config: Config
    in_flight: int  # requests, in the answering worker
    state_dir: Path
    url: str  # of the gateway as the browser names it, without /v1


class Asked(msgspec.Struct, frozen=True):
    """One request. `form` holds every value of each field; `who` is the admin key, for the audit log."""

    query: Mapping[str, str]
    form: Mapping[str, tuple[str, ...]]
    lang: str
    now: float
    who: str
    login_ends: float = 0.0

    def field(self, name: str) -> str:
        """The first value of a form's field, without blanks around it; "" where there is none."""
        return (self.form.get(name) or ("",))[0].strip()


class Shown(msgspec.Struct, frozen=True):
    """A page's record with the status it is answered with."""

    page: msgspec.Struct
    status: int = 200


class Page(msgspec.Struct, frozen=True):
    """One address under /console: `show` may give a status too (Shown), `act` answers forms, `csv` writes a table."""

    path: str
    title: Message
    template: str
    show: Callable[[House, Asked], msgspec.Struct]
    act: Callable[[House, Asked], Shown] | None = None
    csv: Callable[[House, Asked], str] | None = None
