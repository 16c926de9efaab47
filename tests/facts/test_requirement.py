"""Requirements of packages, as PEP 440 orders releases."""

from __future__ import annotations

import pytest

from trimtab.facts.requirement import admits


@pytest.mark.parametrize(
    ("specifier", "version", "admitted"),
    [
        ("==2.13.0", "2.13.0+cpu", True),
        ("==2.13.0+cpu", "2.13.0+cpu", True),
        ("==2.13.0+cpu", "2.13.0", False),
        ("==2.13.0", "2.13", True),
        ("<5.20.0,>=5.16.1", "5.19.0", True),
        ("<5.20.0,>=5.16.1", "5.20.0", False),
        (">= 4.56.0, < 5", "5.2.0", False),
        (">= 4.56.0, != 5.0.*, != 5.5.0", "5.0.3", False),
        (">= 4.56.0, != 5.0.*, != 5.5.0", "5.5.0", False),
        (">= 4.56.0, != 5.0.*, != 5.5.0", "5.5.1", True),
        ("~=4.56.0", "4.56.9", True),
        ("~=4.56.0", "4.57.0", False),
        ("==4.57.*", "4.57.1", True),
        (">4.57.1", "4.57.1", False),
        ("", "1.0", True),
        ("@ git+https://example.org/torch", "1.0", True),
    ],
)
def test_admits(specifier: str, version: str, admitted: bool) -> None:
    assert admits(specifier, version) is admitted
