"""Chat: a page whose script asks the gateway as any client does, under a key of its own that holds an hour."""

from __future__ import annotations

import msgspec

from trimtab.console.asked import Asked, House, Shown
from trimtab.errors import TrimtabError
from trimtab.gateway.limits import Limits
from trimtab.gateway.paths import SERVED
from trimtab.gateway.store.audit import add_entry
from trimtab.gateway.store.keys import Wish, all_keys, change_key, create_key, rotate_key

LASTS_S = 3600.0
TAGS = {"console": "chat"}


class Chat(msgspec.Struct, frozen=True):
    """The page: models that can be chatted with, and the one that is chosen. `key` only in answer to the script."""

    models: tuple[str, ...]
    model: str
    key: str = ""
    fault: str = ""


def show(house: House, asked: Asked) -> Chat:
    """The page before anything was said."""
    served, routes = SERVED[b"/chat/completions"], house.routes
    found = [(name, routes.find(name)) for name in routes.names]
    names = tuple(name for name, route in found if route is not None and route.takes(served, routes.between))
    wished = asked.query.get("model", "")
    return Chat(names, wished if wished in names else names[0] if names else "")


def act(house: House, asked: Asked) -> Shown:
    """A text of the page's key: one key for all who chat here, whose end is moved on, so that none pile up."""
    page, limits = show(house, asked), Limits(endpoints=("chat",))
    known = [key for key in all_keys(house.store) if key.tags == TAGS and key.revoked is None and not key.admin]
    try:
        if known:
            change_key(house.store, known[-1].id, {"expires": asked.now + LASTS_S, "limits": limits})
            made = rotate_key(house.store, known[-1].id, LASTS_S)
        else:
            wish = Wish("console chat", tags=TAGS, limits=limits, expires=asked.now + LASTS_S)
            made = create_key(house.store, wish)
    except TrimtabError as error:
        return Shown(msgspec.structs.replace(page, fault=error.message.text(asked.lang)), error.http_status)
    add_entry(house.store, asked.who, "chat.key", made.key.id)
    return Shown(msgspec.structs.replace(page, key=made.text.reveal()), 201)
