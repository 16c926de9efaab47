"""What a command loads before it answers: the reason why it answers at once."""

from __future__ import annotations

from tests.contracts.test_imports import SRC, sources

QUICK_ROOMS = ("facts", "engine", "plan", "rules", "messages", "cli")


def test_records_are_structs() -> None:
    """A dataclass writes and compiles its methods at every start, 20 times slower than msgspec makes a struct."""
    made = [
        str(file.relative_to(SRC))
        for file in sources()
        if file.relative_to(SRC).parts[0] in QUICK_ROOMS and "@dataclass" in file.read_text(encoding="utf-8")
    ]
    assert made == []
