"""What this host is: CPU, memory, disk, and the limits of the container that Trimtab may run in. Linux."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

FEATURES = {"avx2": "AVX2", "avx512f": "AVX512", "avx512_bf16": "AVX512_BF16", "amx_tile": "AMX",
            "amx_bf16": "AMX_BF16", "asimd": "NEON"}  # fmt: skip
"""What /proc/cpuinfo calls the features that choose vLLM's CPU kernels, and what people call them."""
NO_LIMIT_BYTES = 1 << 60  # cgroup v1 writes "no limit" as a number near 2**63


class HostFacts(msgspec.Struct, frozen=True):
    """Sizes in bytes; `cores` is what this process may use, container quota included.

    `memory_limit_bytes` is the container's, None without one; `memory_available_bytes` already respects it.
    """

    cpu_model: str
    cpu_features: frozenset[str]
    machine: str
    cores: float
    memory_total_bytes: int
    memory_available_bytes: int
    memory_limit_bytes: int | None
    shm_bytes: int | None
    in_container: bool


def read_host(root: Path = Path("/")) -> HostFacts:
    """The facts of this host. `root` is where proc, sys and dev are."""
    cpu = _cpu_info(_text(root / "proc/cpuinfo"))
    group = _groups(root)
    total, available, limit = _memory(root, group)
    shm = root / "dev/shm"
    return HostFacts(
        cpu_model=cpu.get("model name") or cpu.get("Model") or cpu.get("CPU part", ""),
        cpu_features=frozenset(
            FEATURES[f] for f in (cpu.get("flags") or cpu.get("Features") or "").split() if f in FEATURES
        ),
        machine=os.uname().machine,
        cores=_cores(group),
        memory_total_bytes=total,
        memory_available_bytes=available,
        memory_limit_bytes=limit,
        shm_bytes=shutil.disk_usage(shm).total if shm.is_dir() else None,
        in_container=_in_container(root),
    )


def thread_limit(root: Path = Path("/")) -> tuple[int, int] | None:
    """How many threads this container may have and has (pids.max, pids.current); None without a limit."""
    for group in _groups(root):
        most, now = _text(group / "pids.max").strip(), _text(group / "pids.current").strip()
        if most.isdigit():
            return int(most), int(now) if now.isdigit() else 0
    return None


def available_memory_bytes(root: Path = Path("/")) -> int | None:
    """What programs may still take on this host, or in its container; None where the kernel does not tell."""
    return _memory(root, _groups(root))[1] or None


def _memory(root: Path, group: list[Path]) -> tuple[int, int, int | None]:
    """Bytes in total, available, and the container's limit, None without one."""
    memory = _memory_info(_text(root / "proc/meminfo"))
    total, available = memory.get("MemTotal", 0), memory.get("MemAvailable", memory.get("MemFree", 0))
    limit = _memory_limit(group)
    if limit is None or limit >= total > 0:
        return total, available, None
    return total, min(available, max(0, limit - _memory_used(group))), limit


def free_disk_bytes(path: Path) -> int:
    """Free bytes where `path` is or would be made."""
    existing = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
    return shutil.disk_usage(existing).free


def cpu_rank_nodes(environ: Mapping[str, str], root: Path = Path("/")) -> tuple[int, ...] | None:
    """The NUMA nodes that take the ranks of vLLM's CPU back end, one rank each; None: the user binds them himself.

    As vllm/utils/ompmultiprocessing.py and cpu_resource_utils.py choose them (0.20 to 0.33).
    """
    bound = environ.get("VLLM_CPU_OMP_THREADS_BIND") or "auto"
    if bound != "auto" or environ.get("VLLM_CPU_SIM_MULTI_NUMA", "0") != "0":
        return None
    line = next((x for x in _text(root / "proc/self/status").splitlines() if x.startswith("Mems_allowed_list:")), "")
    allowed = _id_list(line.partition(":")[2].strip()) or (0,)
    asked = _id_list(environ.get("CPU_VISIBLE_MEMORY_NODES", ""))
    return tuple(node for node in asked if node in allowed) if asked else allowed


def _id_list(text: str) -> tuple[int, ...]:
    """The kernel's lists: "0-1,3" -> 0, 1, 3; nothing of a text that is none."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found += range(int(first), int(last or first) + 1)
    return tuple(found)


def _cpu_info(text: str) -> dict[str, str]:
    first = text.split("\n\n", 1)[0]
    pairs = (line.partition(":") for line in first.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _memory_info(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        words = value.split()
        if words and words[0].isdigit():
            found[key] = int(words[0]) * 1024
    return found


def _groups(root: Path) -> list[Path]:
    """The directories that may hold this process's limits, cgroup v2 first, each with the levels above it."""
    base, found = root / "sys/fs/cgroup", list[Path]()
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        tops = (
            [base] if not controllers else [base / c for c in controllers.split(",") if c in ("memory", "cpu", "pids")]
        )
        for top in tops:
            place = top / path.lstrip("/")
            found += [place, *(p for p in place.parents if p == top or top in p.parents)]
    return found


def _numbers(groups: list[Path], name: str) -> list[int]:
    return [int(text) for text in (_text(g / name).strip() for g in groups) if text.isdigit()]


def _memory_limit(groups: list[Path]) -> int | None:
    limits = _numbers(groups, "memory.max") + _numbers(groups, "memory.limit_in_bytes")
    real = [n for n in limits if n < NO_LIMIT_BYTES]
    return min(real) if real else None


def _memory_used(groups: list[Path]) -> int:
    """Bytes that count against the limit and cannot be reclaimed: what the group uses less its file cache."""
    used = _numbers(groups, "memory.current") or _numbers(groups, "memory.usage_in_bytes")
    cache = 0
    for line in next((t for t in (_text(g / "memory.stat") for g in groups) if t), "").splitlines():
        key, _, value = line.partition(" ")
        if key in ("inactive_file", "total_inactive_file") and value.isdigit():
            cache = int(value)
    return max(0, (used[0] if used else 0) - cache)


def _cores(groups: list[Path]) -> float:
    cores = float(len(os.sched_getaffinity(0)))
    for group in groups:
        quota, _, period = _text(group / "cpu.max").strip().partition(" ")
        if not quota:
            quota = _text(group / "cpu.cfs_quota_us").strip()
            period = _text(group / "cpu.cfs_period_us").strip()
        if quota.isdigit() and period.isdigit() and int(period):
            cores = min(cores, int(quota) / int(period))
    return cores


def _in_container(root: Path) -> bool:
    marks = (root / ".dockerenv", root / "run/.containerenv")
    return any(m.exists() for m in marks) or "KUBERNETES_SERVICE_HOST" in os.environ


def _text(file: Path) -> str:
    """What a file of the kernel says; "" where this kernel has no such file or does not show it."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
