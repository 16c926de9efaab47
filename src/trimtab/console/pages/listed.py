"""The pages in the order of the menu."""

from __future__ import annotations

from trimtab.console.asked import Page
from trimtab.console.pages import chat, keys, models, overview, usage
from trimtab.messages import msg

PAGES = (
    Page("/console", msg("Overview"), "overview.html", overview.show),
    Page("/console/keys", msg("Keys"), "keys.html", keys.show, keys.act),
    Page("/console/models", msg("Models"), "models.html", models.show),
    Page("/console/usage", msg("Usage"), "usage.html", usage.show, csv=usage.table),
    Page("/console/chat", msg("Chat"), "chat.html", chat.show, chat.act),
)
