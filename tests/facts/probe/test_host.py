"""The host's facts, from the files of a kernel laid out as Linux does."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from trimtab.facts.probe.host import cpu_rank_nodes, free_disk_bytes, read_host

GIB = 2**30
MEMORY = "MemTotal:       33554432 kB\nMemFree:  1048576 kB\nMemAvailable:   16777216 kB\nHugePages_Total:       0\n"
CPU = "processor\t: 0\nmodel name\t: Some CPU @ 2.0GHz\nflags\t\t: fpu avx avx2 avx512f amx_tile\n\nprocessor\t: 1\n"


def lay(root: Path, files: dict[str, str]) -> Path:
    for name, text in {"proc/meminfo": MEMORY, "proc/cpuinfo": CPU, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_plain_host(tmp_path: Path) -> None:
    found = read_host(lay(tmp_path, {}))
    assert found.cpu_model == "Some CPU @ 2.0GHz"
    assert found.cpu_features == {"AVX2", "AVX512", "AMX"}
    assert (found.memory_total_bytes, found.memory_available_bytes) == (32 * GIB, 16 * GIB)
    assert found.memory_limit_bytes is None
    assert not found.in_container


def test_cgroup_v2_limits_of_the_level_above_hold(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/pod/box\n",
        "sys/fs/cgroup/pod/box/memory.max": "max\n",
        "sys/fs/cgroup/pod/memory.max": str(8 * GIB),
        "sys/fs/cgroup/pod/box/memory.current": str(5 * GIB),
        "sys/fs/cgroup/pod/box/memory.stat": f"anon 1\ninactive_file {GIB}\n",
        "sys/fs/cgroup/pod/cpu.max": "50000 100000\n",
        ".dockerenv": "",
    }
    found = read_host(lay(tmp_path, files))
    assert (found.memory_limit_bytes, found.memory_available_bytes) == (8 * GIB, 4 * GIB)
    assert found.cores == 0.5
    assert found.in_container


def test_cgroup_v1(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "5:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n1:name=systemd:/docker/x\n",
        "sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes": str(4 * GIB),
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        "sys/fs/cgroup/memory/docker/x/memory.usage_in_bytes": str(GIB),
        "sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us": "-1",
        "sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us": "100000",
    }
    found = read_host(lay(tmp_path, files))
    assert (found.memory_limit_bytes, found.memory_available_bytes) == (4 * GIB, 3 * GIB)
    assert found.cores >= 1


def test_a_limit_above_the_host_is_none(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": str(64 * GIB)}
    assert read_host(lay(tmp_path, files)).memory_limit_bytes is None


def test_arm(tmp_path: Path) -> None:
    found = read_host(lay(tmp_path, {"proc/cpuinfo": "processor : 0\nFeatures : fp asimd\nCPU part : 0xd0c\n"}))
    assert found.cpu_features == {"NEON"}


def test_this_host(tmp_path: Path) -> None:
    found = read_host()
    assert found.memory_total_bytes == psutil.virtual_memory().total
    assert 0 < found.memory_available_bytes <= found.memory_total_bytes
    assert found.cores > 0
    assert free_disk_bytes(tmp_path / "not/yet/made") > 0


@pytest.mark.parametrize(
    ("allowed", "environ", "nodes"),
    [
        ("0", {}, (0,)),
        ("0-1,3", {}, (0, 1, 3)),
        ("", {}, (0,)),
        ("0-3", {"CPU_VISIBLE_MEMORY_NODES": "1,2,9"}, (1, 2)),
        ("0-3", {"VLLM_CPU_OMP_THREADS_BIND": "0-3|4-7"}, None),
        ("0", {"VLLM_CPU_SIM_MULTI_NUMA": "1"}, None),
    ],
)
def test_nodes_for_the_ranks_of_a_cpu(
    tmp_path: Path, allowed: str, environ: dict[str, str], nodes: tuple[int, ...] | None
) -> None:
    status = tmp_path / "proc" / "self" / "status"
    status.parent.mkdir(parents=True)
    status.write_text(f"Name:\tx\nMems_allowed_list:\t{allowed}\n")
    assert cpu_rank_nodes(environ, tmp_path) == nodes
