"""What a server's supervisor costs while it serves and is asked nothing: CPU and memory of it and of its guard.

    python -m benchmarks.at_rest NAME [--seconds 60]

NAME is a server that `trimtab up NAME` runs; Linux only. The engine's own cost is shown beside it.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from trimtab.cli.settings import dirs
from trimtab.supervisor import registry

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """CPU seconds that a process has spent, those of children it has reaped left out."""
    words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICKS


def memory_mib(pid: int) -> tuple[float, float]:
    """Resident memory, and the part of it that no other process shares."""
    kib: dict[str, int] = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()[1:]:
        name, size, *_ = line.split()
        kib[name.rstrip(":")] = int(size)
    return kib["Rss"] / 1024, (kib["Private_Clean"] + kib["Private_Dirty"]) / 1024


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--seconds", type=float, default=60.0)
    told = parser.parse_args()
    record = registry.find(dirs().state, told.name)
    processes = {"supervisor": record.pid, "guard": record.group, "engine's API server": record.engine_pid}
    before = {name: cpu_s(pid) for name, pid in processes.items()}
    begun = time.monotonic()
    time.sleep(told.seconds)
    seconds = time.monotonic() - begun
    print(f"{told.name} ({record.state}) over {seconds:.0f} s, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name, pid in processes.items():
        resident, own = memory_mib(pid)
        share = (cpu_s(pid) - before[name]) / seconds
        print(f"{name}: {share:.2%} of a core, {resident:.0f} MiB resident, {own:.0f} MiB of its own")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
