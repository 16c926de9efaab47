"""Look at this host before a start: everything that host rules judge, gathered once into one record."""

from __future__ import annotations

import os
import resource
import socket
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
import psutil

from trimtab.facts.host import Card, Disk, HostRecord, Limits, Memory, Packages, PortHolder, Processor, Wanted
from trimtab.facts.probe import gpus as nvml
from trimtab.facts.probe.card_health import Health, read_health
from trimtab.facts.probe.gpus import Gpus
from trimtab.facts.probe.host import read_host, thread_limit
from trimtab.facts.probe.hub_token import read_token
from trimtab.facts.probe.places import look_at
from trimtab.facts.probe.processes import Seen, left_over, see_processes

VARIABLES = (
    "CUDA_VISIBLE_DEVICES", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "http_proxy", "HTTP_PROXY", "all_proxy",
    "ALL_PROXY", "no_proxy", "NO_PROXY", "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "VLLM_HOST_IP",
    "VLLM_ENABLE_CUDA_COMPATIBILITY", "LD_LIBRARY_PATH",
)  # fmt: skip
TROUBLES = {
    nvml.LIBRARY_NOT_FOUND: "library",
    nvml.DRIVER_NOT_LOADED: "loaded",
    nvml.NO_PERMISSION: "permission",
    nvml.LIB_RM_VERSION_MISMATCH: "mismatch",
}
NVIDIA, DISPLAY = "0x10de", "0x03"  # PCI vendor, and class of display controllers


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be looked at. `servers`: session of an engine that Trimtab runs -> its name."""

    wanted: Wanted
    packages: Packages
    state: Path
    cache: Path
    weights: Path | None = None
    servers: Mapping[int, str] = msgspec.field(default_factory=dict)
    port_holder: PortHolder | None = None


def look(asked: Asked, found: Gpus, environ: Mapping[str, str] = os.environ, root: Path = Path("/")) -> HostRecord:
    """The record. `found`: the cards, which the caller has read already; `root`: where proc, sys and dev are."""
    seen = see_processes()
    host, threads = read_host(root), thread_limit(root)
    limits = _limits(seen, threads)
    interfaces = psutil.net_if_addrs()
    on_cards = [process for card in found.cards for process in card.processes]
    return HostRecord(
        wanted=asked.wanted,
        cards=_cards(found, seen, asked.servers),
        driver=found.driver_version,
        cuda=found.cuda_version,
        gpu_trouble=TROUBLES.get(found.refused, str(found.reason)) if found.refused is not None else "",
        pci_gpus=_pci_gpus(root),
        packages=asked.packages,
        disks=_disks(asked, root),
        limits=limits,
        memory=Memory(
            total_bytes=host.memory_total_bytes,
            available_bytes=host.memory_available_bytes,
            limit_bytes=host.memory_limit_bytes,
            shm_bytes=host.shm_bytes,
            shm_free_bytes=look_at("shared", root / "dev/shm", root).free_bytes if host.shm_bytes else None,
            overcommit=int(_line(root / "proc/sys/vm/overcommit_memory") or 0),
        ),
        processor=Processor(
            model=host.cpu_model,
            machine=host.machine,
            features=tuple(sorted(host.cpu_features)),
            cores=host.cores,
            cores_of_host=os.cpu_count() or 0,
        ),
        left_over=left_over(seen, on_cards, asked.servers),
        port_holder=asked.port_holder,
        token=read_token(environ) if asked.wanted.from_hub or environ.get("HF_TOKEN") else None,
        environ={name: _without_login(environ[name]) for name in VARIABLES if name in environ},
        interfaces=tuple(interfaces),
        addresses=tuple(a.address for entries in interfaces.values() for a in entries if a.family in _INTERNET),
        name_resolves=_name_resolves() if asked.wanted.ranks > 1 else None,
        container=host.in_container,
        wsl="microsoft" in _line(root / "proc/version").lower(),
        infiniband=any(_entries(root / "sys/class/infiniband")),
        now=time.time(),
    )


_INTERNET = (socket.AF_INET, socket.AF_INET6)


def _cards(found: Gpus, seen: Seen, servers: Mapping[int, str]) -> tuple[Card, ...]:
    health = read_health(len(found.cards)) or (Health(),) * len(found.cards)
    return tuple(
        Card(
            index=card.index,
            name=card.name,
            uuid=card.uuid,
            total_bytes=card.total_bytes,
            free_bytes=card.free_bytes,
            capability=card.compute_capability,
            holders=tuple(seen.holder(process, servers) for process in card.processes),
            mig=card.mig,
            slices=known.slices,
            persistence=known.persistence,
            uncorrected_errors=known.uncorrected_errors,
            repair_pending=known.repair_pending,
            repair_failed=known.repair_failed,
            slowdowns=known.slowdowns,
        )
        for card, known in zip(found.cards, health, strict=True)
    )


def _disks(asked: Asked, root: Path) -> tuple[Disk, ...]:
    places = {"models": asked.cache, "state": asked.state}
    if asked.weights is not None:
        places["weights"] = asked.weights
    return (*(look_at(use, path, root) for use, path in places.items()), _temporary(root))


def _temporary(root: Path) -> Disk:
    """Where Python, and so vLLM, makes its temporary files: the first of its candidates that can be written to."""
    try:
        return look_at("temporary", Path(tempfile.gettempdir()), root)
    except FileNotFoundError as error:
        return Disk(use="temporary", path=os.environ.get("TMPDIR") or "/tmp", writable=False, reason=str(error))


def _limits(seen: Seen, threads: tuple[int, int] | None) -> Limits:
    def soft(kind: int) -> int | None:
        return _bound(resource.getrlimit(kind)[0])

    own = None if os.getuid() == 0 else soft(resource.RLIMIT_NPROC)  # root is not held to it
    return Limits(
        open_files=soft(resource.RLIMIT_NOFILE),
        open_files_hard=_bound(resource.getrlimit(resource.RLIMIT_NOFILE)[1]),
        locked_bytes=soft(resource.RLIMIT_MEMLOCK),
        core_bytes=soft(resource.RLIMIT_CORE),
        processes=own,
        address_bytes=soft(resource.RLIMIT_AS),
        container_processes=threads[0] if threads else None,
        processes_now=max(threads[1] if threads else 0, seen.threads if own is not None else 0),
    )


def _bound(value: int) -> int | None:
    return None if value == resource.RLIM_INFINITY else value


def _pci_gpus(root: Path) -> int | None:
    """NVIDIA's display controllers on the bus; None where the kernel shows no bus."""
    devices = _entries(root / "sys/bus/pci/devices")
    found = [d for d in devices if _line(d / "vendor") == NVIDIA and _line(d / "class").startswith(DISPLAY)]
    return len(found) if devices else None


def _name_resolves() -> bool:
    try:
        socket.getaddrinfo(socket.gethostname(), None)
    except (OSError, UnicodeError):
        return False
    return True


def _without_login(value: str) -> str:
    """A proxy's address without the name and password in it."""
    scheme, mark, rest = value.partition("://")
    return f"{scheme}://***@{rest.rpartition('@')[2]}" if mark and "@" in rest else value


def _entries(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        return []  # this kernel has none


def _line(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
