"""The wait for free cards before a restart, over recorded answers of NVML."""

from __future__ import annotations

from collections.abc import Iterator

from tests.fakes.nvml import Card, FakeNvml
from trimtab.cli.keeping import Cards, asked_bounds, pins_of
from trimtab.facts.probe.gpus import Gpus, read_gpus

GIB = 2**30


def answers(*free_gib: tuple[int, int]) -> Iterator[Gpus]:
    """What NVML says of two cards, look by look; the last answer stays."""
    for pair in free_gib:
        yield read_gpus(FakeNvml([Card("NVIDIA A10", 24 * GIB, free * GIB) for free in pair]))
    while True:
        yield read_gpus(FakeNvml([Card("NVIDIA A10", 24 * GIB, free * GIB) for free in free_gib[-1]]))


def cards(devices: tuple[str, ...], *free_gib: tuple[int, int], bound_s: float = 20.0) -> Cards:
    looks = answers(*free_gib)
    return Cards(devices, bound_s, lambda: next(looks))


def test_a_restart_waits_until_the_memory_is_back() -> None:
    assert cards(("0", "1"), (23, 23), (3, 3), (23, 23)).settle() is None


def test_what_is_missing_is_told_after_the_bound() -> None:
    said = cards(("0", "1"), (23, 23), (23, 11), bound_s=0.0).settle()
    assert str(said) == ("card 1 has 12.0 GiB less free than before the first start, 0 s after the engine's end")


def test_other_cards_do_not_matter() -> None:
    assert cards(("0",), (23, 23), (23, 1), bound_s=0.0).settle() is None


def test_a_server_without_cards_waits_for_nothing() -> None:
    def refuse() -> Gpus:
        raise AssertionError

    assert Cards((), read=refuse).settle() is None


def test_what_was_asked_for_is_kept_and_what_was_given_is_pinned() -> None:
    assert asked_bounds(["dtype=half"], 8192, None) == ("dtype=half", "max-model-len>=8192")
    assert pins_of(["--seed"], ["--max-model-len", "512", "--no-enable-prefix-caching"]) == (
        "--seed", "max-model-len", "enable-prefix-caching",
    )  # fmt: skip
    assert pins_of(None, ["vllm", "serve", "m", "--seed", "1"]) == ()
    assert pins_of(None, []) == pins_of(None, None) == ()
