"""Whether the cards of a server are free again for its next start, and who holds them where they are not."""

from __future__ import annotations

import time
from collections.abc import Callable

from trimtab.cli.launch import Launch
from trimtab.engine.command import LaunchCommand
from trimtab.facts.probe.gpus import Gpu, Gpus, read_gpus
from trimtab.messages import Message, msg
from trimtab.plan.memory.versions import default_utilization, release
from trimtab.supervisor.environments import vllm_argv

LOOK_S, LOOK_EVERY_S = 30.0, 0.5
SLACK_BYTES = 512 * 2**20  # what a desktop or another server may take meanwhile without our waiting for it
GIB = 2**30


class Cards:
    """The cards of one server and how much of them was free before its first start."""

    def __init__(
        self, devices: tuple[str, ...], launch: Launch, look_s: float = LOOK_S, read: Callable[[], Gpus] = read_gpus
    ) -> None:
        self._devices, self._look_s, self._read = devices, look_s, read
        self._program, self._version = len(vllm_argv(launch.engine)), launch.engine.version
        self._before = {index: card.free_bytes for index, card in _found(read(), devices).items()} if devices else {}

    def settle(self, argv: tuple[str, ...]) -> Message | None:
        """Wait until as much is free again as before; after a while what `argv` asks for is enough, else who holds it.

        vLLM refuses to start on a card with less free than --gpu-memory-utilization of it.
        """
        end = time.monotonic() + self._look_s
        while True:
            seen = _found(self._read(), tuple(self._before)) if self._before else {}
            if all(index in seen and self._missing(index, seen[index]) <= SLACK_BYTES for index in self._before):
                return None
            if time.monotonic() >= end:
                return self._taken(seen, self._share(argv))
            time.sleep(LOOK_EVERY_S)

    def _missing(self, index: str, card: Gpu) -> int:
        return self._before[index] - card.free_bytes

    def _share(self, argv: tuple[str, ...]) -> float:
        told = LaunchCommand.from_argv(["vllm", *argv[self._program :]]).get("gpu-memory-utilization")
        try:
            return float(told) if told is not None else default_utilization(release(self._version))
        except ValueError:
            return 1.0

    def _taken(self, seen: dict[str, Gpu], share: float) -> Message | None:
        """The first card that the start would not find free enough."""
        for index in self._before:
            card = seen.get(index)
            if card is None:
                return msg("card {card} is not seen any more", card=index)
            need = share * card.total_bytes
            if card.free_bytes < need and self._missing(index, card) > SLACK_BYTES:
                return msg(
                    "card {card} has {free:.1f} GiB free and the start needs {need:.1f} GiB; it is held by {holders}",
                    card=index,
                    free=card.free_bytes / GIB,
                    need=need / GIB,
                    holders=_holders(card),
                )
        return None


def _holders(card: Gpu) -> Message | str:
    if not card.processes:
        return msg("a process that the driver does not name here")
    from trimtab.facts.probe.processes import see_processes

    processes = see_processes()
    return ", ".join(processes.holder(process, {}).words for process in card.processes)


def _found(gpus: Gpus, devices: tuple[str, ...]) -> dict[str, Gpu]:
    return {str(card.index): card for card in gpus.cards if str(card.index) in devices}
