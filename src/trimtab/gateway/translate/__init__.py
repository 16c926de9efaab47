"""Translations between the protocols of clients and of back ends: `between` finds the one that a request needs.

Pure: bytes in, bytes out. A pair is two files, `A_B.py` (the request: the caller speaks A, the back end B) and
`B_as_A.py` (the answer, whole and streamed). Pairs that have no files of their own are chained over chat completions.
What all ways from chat, or all streams of chat, have in common is in `from_chat.py` and `chat_stream.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from trimtab.gateway.routes import Translation
from trimtab.gateway.translate import chat_messages, chat_responses
from trimtab.gateway.translate.from_chat import FromChat
from trimtab.gateway.translate.messages_chat import CountTokens, MessagesToChat
from trimtab.gateway.translate.responses_chat import ResponsesToChat
from trimtab.gateway.translate.translation import Chain

__all__ = ["Chain", "between"]

_OWN = {
    b"/chat/completions": "chat",
    b"/responses": "responses",
    b"/messages": "messages",
    b"/messages/count_tokens": "count_tokens",
}


def _to_messages() -> Translation:
    return FromChat(chat_messages.WAY)


def _to_responses() -> Translation:
    return FromChat(chat_responses.WAY)


# In order of preference: what a back end has to speak, and the way there.
_WAYS: dict[bytes, dict[str, Callable[[], Translation]]] = {
    b"/chat/completions": {"messages": _to_messages, "responses": _to_responses},
    b"/messages": {"chat": MessagesToChat, "responses": lambda: Chain(MessagesToChat(), _to_responses())},
    b"/responses": {"chat": ResponsesToChat, "messages": lambda: Chain(ResponsesToChat(), _to_messages())},
    b"/messages/count_tokens": {"tokenize": CountTokens},
}


def between(asks: bytes, speaks: frozenset[str]) -> Translation | None:
    """Of one request to `asks` (without /v1); None where the bytes pass, or where there is no way."""
    own = _OWN.get(asks)
    if own is None or own in speaks:
        return None
    for spoken, way in _WAYS.get(asks, {}).items():
        if spoken in speaks:
            return way()
    return None
