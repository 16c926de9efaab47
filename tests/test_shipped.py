"""Data files of the package."""

from __future__ import annotations

import pytest

from trimtab import shipped


def test_reads_a_file_of_the_package() -> None:
    assert shipped.read("trimtab.engine.flags", "tables/0.33.json").startswith(b"{")


def test_names_a_file_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError, match=r"0\.1\.json"):
        shipped.read("trimtab.engine.flags", "tables/0.1.json")
