"""Which processes of this host are engines of vLLM, and which of them nobody watches any more."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

import msgspec
import psutil

from trimtab.facts.host import Holder
from trimtab.facts.probe.gpus import GpuProcess

COMMAND_LENGTH = 120
_PART = re.compile(r"^\S+::(EngineCore|Worker|DPCoordinator)")
_SPAWNED = re.compile(r"multiprocessing[./](spawn|forkserver|resource_tracker)")
_KEEPER = re.compile(r"python|vllm|::|raylet|trimtab|pytest", re.IGNORECASE)


class Seen(msgspec.Struct, frozen=True):
    """One look at the process table: command by pid, parent by pid, and how many threads this user has."""

    commands: Mapping[int, str]
    parents: Mapping[int, int]
    threads: int

    def holder(self, process: GpuProcess, servers: Mapping[int, str]) -> Holder:
        """The process on a card, by name; `servers`: session or group of an engine -> Trimtab's server."""
        pid = process.pid
        return Holder(pid, self.commands.get(pid, ""), process.used_bytes, server_of(pid, servers), self.is_left(pid))

    def is_left(self, pid: int) -> bool:
        """Whether it is a part of an engine whose launcher is gone: its parent is an init, not a Python or a vLLM.

        vLLM names its parts by setproctitle; without that package they are plain children of multiprocessing.
        """
        command = self.commands.get(pid, "")
        if not (_PART.match(command) or _SPAWNED.search(command)):
            return False
        parent = self.parents.get(pid, 0)
        return parent != 0 and _KEEPER.search(self.commands.get(parent, "")) is None


def see_processes() -> Seen:
    """All processes that this user may see."""
    commands: dict[int, str] = {}
    parents: dict[int, int] = {}
    threads, me = 0, os.getuid()
    for process in psutil.process_iter(("cmdline", "name", "ppid", "num_threads", "uids")):
        about = process.info
        words = " ".join(" ".join(about["cmdline"] or ()).split()) or about["name"] or ""
        commands[process.pid] = words[:COMMAND_LENGTH]  # a title that was set is padded with blanks
        parents[process.pid] = about["ppid"] or 0
        if about["uids"] is not None and about["uids"].real == me:
            threads += about["num_threads"] or 0
    return Seen(commands, parents, threads)


def left_over(seen: Seen, on_cards: Sequence[GpuProcess], servers: Mapping[int, str]) -> tuple[Holder, ...]:
    """Parts of engines that nobody watches, with what they hold on cards; none of `servers` is among them.

    A child of multiprocessing that vLLM did not name counts only where it holds a card.
    """
    held: dict[int, int] = {}
    for process in on_cards:
        held[process.pid] = held.get(process.pid, 0) + (process.used_bytes or 0)
    named = [pid for pid, command in seen.commands.items() if _PART.match(command) or pid in held]
    return tuple(
        Holder(pid, seen.commands[pid], held.get(pid) or None, None, True)
        for pid in named
        if pid in seen.commands and seen.is_left(pid) and server_of(pid, servers) is None
    )


def server_of(pid: int, servers: Mapping[int, str]) -> str | None:
    """Trimtab's server that a process belongs to, by its session or process group."""
    if not servers:
        return None
    try:
        return servers.get(os.getsid(pid)) or servers.get(os.getpgid(pid))
    except OSError:
        return None  # it ended meanwhile, or is another user's
