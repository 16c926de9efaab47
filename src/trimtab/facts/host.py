"""What was seen of a host before a start: one record, gathered by a probe, judged by rules, replayed by tests.

Whatever was not asked or not told is None or empty; sizes are in bytes.
"""

from __future__ import annotations

import msgspec

GIB = 1 << 30


class Holder(msgspec.Struct, frozen=True):
    """A process on a card or of a vLLM. `server`: Trimtab's name for it; `left_over`: nobody who started it lives."""

    pid: int
    command: str = ""
    used_bytes: int | None = None
    server: str | None = None
    left_over: bool = False

    @property
    def words(self) -> str:
        """ "process 12 (VLLM::EngineCore), 20.1 GiB"."""
        name = f" ({self.server or self.command})" if self.server or self.command else ""
        size = f", {self.used_bytes / GIB:.1f} GiB" if self.used_bytes else ""
        return f"{self.pid}{name}{size}"


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One NVIDIA card as NVML tells it; `index` in PCI order. `slices`: MIG devices, None where MIG is off."""

    index: int
    name: str = ""
    uuid: str = ""
    total_bytes: int = 0
    free_bytes: int = 0
    capability: tuple[int, int] | None = None
    holders: tuple[Holder, ...] = ()
    mig: bool = False
    slices: int | None = None
    persistence: bool | None = None
    uncorrected_errors: int | None = None  # since the driver was loaded
    repair_pending: bool | None = None  # rows or pages to be retired at the next reset
    repair_failed: bool | None = None
    slowdowns: tuple[str, ...] = ()  # hardware's own: "thermal", "power brake", "hardware"


class Packages(msgspec.Struct, frozen=True, kw_only=True):
    """The engine's environment as its metadata tells it. `wants`: package -> the versions that vLLM asks for."""

    vllm: str | None = None
    on_cpu: bool = False
    torch: str | None = None
    transformers: str | None = None
    cuda: tuple[int, int] | None = None  # that torch was built with
    installed_at: float | None = None  # seconds since the epoch
    python: str = ""
    wants: dict[str, str] = msgspec.field(default_factory=dict)

    def version_of(self, package: str) -> str | None:
        """The installed version of torch or transformers."""
        return {"torch": self.torch, "transformers": self.transformers}.get(package)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What the launch asks of the host; defaults where it says nothing. `cards`: how many it takes, 0 on a CPU;
    `devices`: those that the user chose, by index or UUID."""

    model: str | None = None
    host: str = "127.0.0.1"
    port: int | None = None
    ranks: int = 1
    cards: int = 0
    devices: tuple[str, ...] = ()
    utilization: float | None = None
    weights_bytes: int | None = None
    pinned_bytes: int = 0  # swap space, offloaded weights and caches
    cache_bytes: int = 0  # KV cache in host memory, on vLLM's CPU back end
    fetch_bytes: int | None = None  # still to be downloaded
    from_hub: bool = False
    cached: bool | None = None  # whole in the hub's cache
    gated: bool | None = None
    pointers: tuple[str, ...] = ()  # files of the model that are Git LFS pointers
    absent: tuple[str, ...] = ()  # what the model's directory lacks
    on_cpu: bool = False


class Disk(msgspec.Struct, frozen=True, kw_only=True):
    """A directory that a start writes to. `use`: "models", "state", "temporary" or "weights" (read alone)."""

    use: str
    path: str
    free_bytes: int | None = None
    writable: bool = True
    reason: str = ""  # why not
    filesystem: str = ""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What this process may take (setrlimit), None where there is no limit: soft, and hard for open files."""

    open_files: int | None = None
    open_files_hard: int | None = None
    locked_bytes: int | None = None
    core_bytes: int | None = 0
    processes: int | None = None
    address_bytes: int | None = None
    container_processes: int | None = None  # pids.max
    processes_now: int | None = None  # threads of this user, or of the container where it has a limit


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Host memory. `limit_bytes`: the container's; `available_bytes` respects it."""

    total_bytes: int = 0
    available_bytes: int = 0
    limit_bytes: int | None = None
    shm_bytes: int | None = None
    shm_free_bytes: int | None = None
    overcommit: int = 0  # vm.overcommit_memory


class Processor(msgspec.Struct, frozen=True, kw_only=True):
    """The CPU: `features` as people call them (AVX2, AVX512, AMX); `cores` may be used here, quota included."""

    model: str = ""
    machine: str = "x86_64"
    features: tuple[str, ...] = ()
    cores: float = 0.0
    cores_of_host: int = 0


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A hub token's shape, never its text. `found`: where ("HF_TOKEN", a file)."""

    found: str
    has_blank: bool = False
    has_quotes: bool = False
    known_prefix: bool = True
    length: int = 0


class PortHolder(msgspec.Struct, frozen=True, kw_only=True):
    """Who listens on the wanted port; `pid` 0: a process that this user may not see."""

    pid: int = 0
    command: str = ""
    server: str | None = None


class HostRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was seen, and the launch it was looked at for. `environ` holds only variables that rules read."""

    wanted: Wanted = Wanted()
    cards: tuple[Card, ...] = ()
    driver: str | None = None
    cuda: tuple[int, int] | None = None  # the newest that the driver serves
    gpu_trouble: str = ""  # "library", "loaded", "permission", "mismatch", or NVML's own words
    pci_gpus: int | None = None  # NVIDIA display controllers on the PCI bus
    packages: Packages = Packages()
    disks: tuple[Disk, ...] = ()
    limits: Limits = Limits()
    memory: Memory = Memory()
    processor: Processor = Processor()
    left_over: tuple[Holder, ...] = ()
    port_holder: PortHolder | None = None
    token: Token | None = None
    environ: dict[str, str] = msgspec.field(default_factory=dict)
    interfaces: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    name_resolves: bool | None = None
    container: bool = False
    wsl: bool = False
    infiniband: bool = False
    now: float | None = None  # seconds since the epoch

    def disk(self, use: str) -> Disk | None:
        """The directory for this use."""
        return next((disk for disk in self.disks if disk.use == use), None)

    @property
    def on_gpu(self) -> bool:
        """Whether the launch is to run on NVIDIA cards."""
        return not self.wanted.on_cpu and not self.packages.on_cpu
