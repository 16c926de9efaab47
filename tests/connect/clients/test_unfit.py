"""Programs that take no OpenAI URL are named as such."""

from __future__ import annotations

import pytest

from trimtab.connect.registry import client, clients
from trimtab.errors import UsageError


def test_gemini_cli_is_refused_with_the_reason() -> None:
    with pytest.raises(UsageError, match="takes no OpenAI URL"):
        client("gemini-cli")


def test_each_client_is_found_under_its_own_name() -> None:
    for one in clients():
        assert client(one.name) is one
        assert one.version
        assert one.edits is None or one.read is not None
