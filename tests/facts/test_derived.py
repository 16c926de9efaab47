"""A derived number carries its formula and inputs, and cannot be changed."""

from __future__ import annotations

import pytest

from trimtab.facts.derived import Derived


def test_defaults_and_frozen() -> None:
    found = Derived(24.0, "GiB", "2 x 12", inputs={"each_gib": 12})
    assert (found.source, found.note, found.inputs["each_gib"]) == ("computed", "", 12)
    assert not Derived(1, "", "1").inputs
    with pytest.raises(AttributeError):
        found.value = 3.0  # type: ignore[misc]
