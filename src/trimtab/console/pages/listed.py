"""The pages in the order of the menu."""

from __future__ import annotations

from trimtab.console.asked import Page
from trimtab.console.pages import keys, overview
from trimtab.messages import msg

PAGES = (
    Page("/console", msg("Overview"), "overview.html", overview.show),
    Page("/console/keys", msg("Keys"), "keys.html", keys.show, keys.act),
)
