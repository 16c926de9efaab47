"""Which NVIDIA cards this host has, what is free on them and who uses them, asked of NVML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import msgspec

from trimtab.messages import Message, msg


class GpuProcess(msgspec.Struct, frozen=True):
    """A process on a card; `used_bytes` None where the driver does not tell (containers, MIG)."""

    pid: int
    used_bytes: int | None


class Gpu(msgspec.Struct, frozen=True):
    """One card as NVML numbers it (`index`: PCI order, CUDA's with CUDA_DEVICE_ORDER=PCI_BUS_ID). Sizes in bytes."""

    index: int
    uuid: str
    name: str
    total_bytes: int
    free_bytes: int
    compute_capability: tuple[int, int]
    processes: tuple[GpuProcess, ...] = ()
    mig: bool = False


class Gpus(msgspec.Struct, frozen=True):
    """All cards; empty with a `reason` where none can be seen, and NVML's own number for it in `refused`.

    `cuda_version`: the newest that the driver serves.
    """

    cards: tuple[Gpu, ...]
    driver_version: str | None = None
    cuda_version: tuple[int, int] | None = None
    reason: Message | None = None
    refused: int | None = None


class NvmlError(Exception):
    """NVML refused a call; `code` is its own number (NVML_ERROR_*)."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


LIBRARY_NOT_FOUND, DRIVER_NOT_LOADED, NO_PERMISSION, NOT_SUPPORTED, LIB_RM_VERSION_MISMATCH = 12, 9, 4, 3, 18
"""NVML's own numbers (nvml.h, nvmlReturn_t)."""


class Nvml(Protocol):
    """The part of NVML that Trimtab asks; every call may raise NvmlError."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def driver_version(self) -> str: ...

    def cuda_version(self) -> int: ...

    def count(self) -> int: ...

    def uuid(self, index: int) -> str: ...

    def name(self, index: int) -> str: ...

    def memory(self, index: int) -> tuple[int, int]:
        """Total and free bytes as CUDA counts them: the total without what the driver reserves.

        Measured on an H200 with driver 580: cudaMemGetInfo says 150,109,880,320 of both; NVML's own total is
        644,939,776 (its `reserved`) more.
        """
        ...

    def compute_capability(self, index: int) -> tuple[int, int]: ...

    def processes(self, index: int) -> Sequence[tuple[int, int | None]]: ...

    def mig_enabled(self, index: int) -> bool: ...


class DriverNvml:
    """NVML of this host's driver."""

    def __init__(self) -> None:
        import pynvml

        self._lib: Any = pynvml

    def start(self) -> None:
        with self._refusals():
            self._lib.nvmlInit()

    def stop(self) -> None:
        with self._refusals():
            self._lib.nvmlShutdown()

    def driver_version(self) -> str:
        with self._refusals():
            return _word(self._lib.nvmlSystemGetDriverVersion())

    def cuda_version(self) -> int:
        with self._refusals():
            return int(self._lib.nvmlSystemGetCudaDriverVersion_v2())

    def count(self) -> int:
        with self._refusals():
            return int(self._lib.nvmlDeviceGetCount())

    def uuid(self, index: int) -> str:
        with self._device(index) as device:
            return _word(self._lib.nvmlDeviceGetUUID(device))

    def name(self, index: int) -> str:
        with self._device(index) as device:
            return _word(self._lib.nvmlDeviceGetName(device))

    def memory(self, index: int) -> tuple[int, int]:
        with self._device(index) as device:
            try:
                found = self._lib.nvmlDeviceGetMemoryInfo(device, version=self._lib.nvmlMemory_v2)
            except self._lib.NVMLError_FunctionNotFound:  # drivers before 510: their total holds no reserved part
                found = self._lib.nvmlDeviceGetMemoryInfo(device)
                return int(found.total), int(found.free)
            return int(found.total) - int(found.reserved), int(found.free)

    def compute_capability(self, index: int) -> tuple[int, int]:
        with self._device(index) as device:
            major, minor = self._lib.nvmlDeviceGetCudaComputeCapability(device)
            return int(major), int(minor)

    def processes(self, index: int) -> Sequence[tuple[int, int | None]]:
        with self._device(index) as device:
            return [(int(p.pid), p.usedGpuMemory) for p in self._lib.nvmlDeviceGetComputeRunningProcesses(device)]

    def mig_enabled(self, index: int) -> bool:
        with self._device(index) as device:
            return bool(self._lib.nvmlDeviceGetMigMode(device)[0])

    @contextmanager
    def _device(self, index: int) -> Iterator[Any]:
        with self._refusals():
            yield self._lib.nvmlDeviceGetHandleByIndex(index)

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except self._lib.NVMLError as error:
            raise NvmlError(int(error.value), str(error)) from error


def read_gpus(nvml: Nvml | None = None) -> Gpus:
    """All cards of this host. A host without NVIDIA is no error: the result is empty and says why."""
    source = nvml if nvml is not None else DriverNvml()
    try:
        source.start()
    except NvmlError as error:
        return Gpus((), reason=_why_none(error), refused=error.code)
    try:
        driver, cuda = source.driver_version(), source.cuda_version()
        cards = tuple(_card(source, index) for index in range(source.count()))
    except NvmlError as error:
        return Gpus((), reason=_why_none(error), refused=error.code)
    finally:
        source.stop()
    version = (cuda // 1000, cuda % 1000 // 10)
    reason = None if cards else msg("the driver {version} sees no NVIDIA card", version=driver)
    return Gpus(cards, driver, version, reason)


def _card(nvml: Nvml, index: int) -> Gpu:
    total, free = nvml.memory(index)
    return Gpu(
        index=index,
        uuid=nvml.uuid(index),
        name=nvml.name(index),
        total_bytes=total,
        free_bytes=free,
        compute_capability=nvml.compute_capability(index),
        processes=_processes(nvml, index),
        mig=_mig(nvml, index),
    )


def _processes(nvml: Nvml, index: int) -> tuple[GpuProcess, ...]:
    try:
        return tuple(GpuProcess(pid, used) for pid, used in nvml.processes(index))
    except NvmlError as error:
        if error.code in (NOT_SUPPORTED, NO_PERMISSION):
            return ()
        raise


def _mig(nvml: Nvml, index: int) -> bool:
    try:
        return nvml.mig_enabled(index)
    except NvmlError as error:
        if error.code == NOT_SUPPORTED:
            return False
        raise


def _why_none(error: NvmlError) -> Message:
    if error.code == LIBRARY_NOT_FOUND:
        return msg("no NVIDIA driver is installed (libnvidia-ml.so.1 is not found)")
    if error.code == DRIVER_NOT_LOADED:
        return msg("the NVIDIA driver is installed but not loaded: check with nvidia-smi, or restart the host")
    if error.code == NO_PERMISSION:
        return msg("this user may not ask the NVIDIA driver: check the permissions of /dev/nvidia*")
    if error.code == LIB_RM_VERSION_MISMATCH:
        return msg("the NVIDIA driver and its library are of different versions: restart the host after the update")
    return msg("the NVIDIA driver refuses: {reason}", reason=str(error))


def _word(text: Any) -> str:
    return text.decode() if isinstance(text, bytes) else str(text)
