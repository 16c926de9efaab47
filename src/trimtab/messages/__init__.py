"""What Trimtab says, in the reader's language: a message is a template with values, rendered where it is shown.

Every room may import this one. It holds no language state: whoever shows a message names the language.
A rule gives both languages in its own file (`zh=`); all other templates are translated in the gettext
catalogue beside this file (`scripts/messages` extracts and compiles it).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab import shipped

if TYPE_CHECKING:
    from gettext import GNUTranslations

LANGUAGES = ("en", "zh")


class Message(msgspec.Struct, frozen=True):
    """A `str.format` template in English, its values, and, where its author gave one, the Chinese template."""

    template: str
    values: Mapping[str, object] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    zh: str | None = None

    def __hash__(self) -> int:
        return hash((self.template, self.zh))  # values may hold lists

    def __str__(self) -> str:
        return self.text("en")

    def text(self, lang: str) -> str:
        """Render in `lang` ("en" or "zh"); a value that is itself a Message is rendered in the same language."""
        template = self.template
        if lang == "zh":
            template = self.zh if self.zh is not None else _translated(self.template, lang)
        if not self.values:
            return template.format()
        values = {k: v.text(lang) if isinstance(v, Message) else v for k, v in self.values.items()}
        return template.format(**values)


def msg(template: str, /, *, zh: str | None = None, **values: object) -> Message:
    """A message to be shown later. `template` is also the key of its translation: pass a literal."""
    return Message(template, MappingProxyType(values), zh)


def packed(message: Message) -> dict[str, Any]:
    """`message` as plain data for a file, so that who reads it later still chooses the language."""
    shown: dict[str, Any] = {"template": message.template}
    if message.values:
        shown["values"] = {name: _plain(value) for name, value in message.values.items()}
    if message.zh is not None:
        shown["zh"] = message.zh
    return shown


def _plain(value: object) -> object:
    if isinstance(value, Message):
        return packed(value)
    if isinstance(value, bool | int | float | None):
        return value
    return str(value)


def unpacked(data: Mapping[str, Any]) -> Message | None:
    """The message that `packed` made `data` of; None where it is none that can be shown."""
    try:
        values = {name: _unpacked(value) for name, value in data.get("values", {}).items()}
        message = msg(data["template"], zh=data.get("zh"), **values)
        return message if all(message.text(lang) for lang in LANGUAGES) else None
    except (LookupError, ValueError, TypeError, AttributeError):  # cut, changed, or of another version
        return None


def _unpacked(value: Any) -> object:
    return unpacked(value) or "" if isinstance(value, dict) else value


def _translated(template: str, lang: str) -> str:
    # gettext keeps the header of its file under the empty key
    return _catalogue(lang).gettext(template) if template else ""


@cache
def _catalogue(lang: str) -> GNUTranslations:
    from gettext import GNUTranslations
    from io import BytesIO

    return GNUTranslations(BytesIO(shipped.read(__name__, f"{lang}/LC_MESSAGES/trimtab.mo")))
