"""The wait for free cards before a restart, over recorded answers of NVML."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tests.fakes.nvml import Card, FakeNvml
from trimtab.cli.cards import Cards
from trimtab.cli.launch import Launch
from trimtab.engine.command import LaunchCommand
from trimtab.facts.probe.gpus import Gpus, read_gpus
from trimtab.supervisor.environments import Engine, vllm_argv

GIB = 2**30
ENGINE = Engine("given", "cuda", "0.32.0", Path("/opt/vllm/bin/python"), {})
LAUNCH = Launch(engine=ENGINE, command=LaunchCommand.from_argv(["vllm", "serve", "m"]), served_model="m")
HELD: list[tuple[int, int | None]] = [(os.getpid(), 12 * GIB)]


def argv(*flags: str) -> tuple[str, ...]:
    return (*vllm_argv(ENGINE), "serve", "m", *flags)


def answers(*free_gib: tuple[int, ...]) -> Iterator[Gpus]:
    """What NVML says of the cards, look by look; the last answer stays."""
    while True:
        first, *rest = free_gib
        yield read_gpus(FakeNvml([Card("NVIDIA A10", 24 * GIB, free * GIB, processes=HELD) for free in first]))
        free_gib = tuple(rest) or free_gib


def cards(devices: tuple[str, ...], *free_gib: tuple[int, ...], look_s: float = 20.0) -> Cards:
    looks = answers(*free_gib)
    return Cards(devices, LAUNCH, look_s, lambda: next(looks))


def test_a_restart_waits_until_the_memory_is_back() -> None:
    assert cards(("0", "1"), (23, 23), (3, 3), (23, 23)).settle(argv()) is None


def test_who_holds_a_card_is_told() -> None:
    said = str(cards(("0", "1"), (23, 23), (23, 11), look_s=0.0).settle(argv()))
    assert said.startswith("card 1 has 11.0 GiB free and the start needs 22.1 GiB; it is held by ")
    assert f"{os.getpid()} (" in said
    assert said.endswith("12.0 GiB")


def test_what_the_next_start_asks_for_is_enough() -> None:
    """Another server may have taken its share meanwhile; one that was stepped back needs less."""
    found = cards(("0",), (23,), (12,), look_s=0.0)
    assert found.settle(argv("--gpu-memory-utilization", "0.45")) is None
    assert found.settle(argv("--gpu-memory-utilization", "0.9")) is not None


def test_a_card_that_was_never_freer_is_not_waited_for() -> None:
    assert cards(("0",), (12,), (12,), look_s=0.0).settle(argv()) is None


def test_other_cards_do_not_matter() -> None:
    assert cards(("0",), (23, 23), (23, 1), look_s=0.0).settle(argv()) is None


def test_a_card_that_fell_off_the_bus_is_told() -> None:
    said = cards(("1",), (23, 23), (23,), look_s=0.0).settle(argv())
    assert str(said) == "card 1 is not seen any more"


def test_a_server_without_cards_waits_for_nothing() -> None:
    def refuse() -> Gpus:
        raise AssertionError

    assert Cards((), LAUNCH, read=refuse).settle(argv()) is None
