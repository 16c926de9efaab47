"""What is dropped is stated in the documentation."""

from pathlib import Path

import pytest

from trimtab.gateway.translate import chat_messages, chat_responses, from_chat, messages_chat, responses_chat

DOCS = (Path(__file__).parents[3] / "docs" / "gateway.md").read_text()
ROWS = {
    "messages -> chat": messages_chat.DROPPED,
    "responses -> chat": responses_chat.DROPPED,
    "chat -> messages": chat_messages.DROPPED,
    "chat -> responses": chat_responses.DROPPED,
}


@pytest.mark.parametrize("row", ROWS)
def test_each_dropped_field_is_named(row: str) -> None:
    cells = next(line for line in DOCS.splitlines() if line.startswith(f"| {row} |")).split("|")
    assert {field for field in ROWS[row] if f"`{field}`" not in cells[3]} == set()


@pytest.mark.parametrize("module", [messages_chat, responses_chat, chat_messages, chat_responses])
def test_a_field_is_in_one_list(module: object) -> None:
    words = getattr(module, "TRANSLATED", from_chat.TRANSLATED)
    lists = [words, getattr(module, "KEPT"), getattr(module, "DROPPED")]  # noqa: B009
    assert sum(map(len, lists)) == len(frozenset().union(*lists))
