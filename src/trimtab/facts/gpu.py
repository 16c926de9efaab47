"""Devices that vLLM runs on, and the reading of what people call them ("8xA10", "2xH100-80", "24GiB", "sm_75")."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Literal

import msgspec
from msgspec.structs import replace

from trimtab.errors import UsageError
from trimtab.facts.derived import Derived, Source
from trimtab.facts.generations import Generation, read_generation
from trimtab.messages import Message, msg

GIB_PER_GB = 1e9 / (1 << 30)
MOST_GPUS = 4096


class Gpu(msgspec.Struct, frozen=True):
    """One device. `usable_gib` is the total that its driver reports; speeds are None where no source is known.

    A card known by its generation alone ("sm_75") has 0 GiB and `memory_known` False.
    """

    name: str
    vendor: str
    architecture: str
    capability: str | None
    """"9.0" for CUDA, "gfx942" for ROCm, None where neither applies."""
    nominal_gb: float
    usable_gib: Derived[float]
    bandwidth_gb_s: float | None = None
    fp16_tflops: float | None = None
    fp8_tflops: float | None = None
    fp4_tflops: float | None = None
    link: str = "PCIe"
    link_gb_s: float | None = None
    mig_profiles: tuple[str, ...] = ()
    unified_memory: bool = False
    mig: str = ""

    @property
    def memory_known(self) -> bool:
        return self.nominal_gb > 0

    @property
    def cuda_capability(self) -> tuple[int, int] | None:
        """(9, 0) and the like; None for what is not CUDA."""
        if self.capability is None or not self.capability[0].isdigit():
            return None
        major, minor = self.capability.split(".")
        return int(major), int(minor)


class GpuSet(msgspec.Struct, frozen=True):
    """The GPUs of one launch, in order: (how many, of which). `notes` say where the spec and the table disagree."""

    members: tuple[tuple[int, Gpu], ...]
    notes: tuple[Message, ...] = ()

    @property
    def count(self) -> int:
        return sum(n for n, _ in self.members)

    @property
    def gpu(self) -> Gpu:
        """The GPU with the least memory: the one that a launch over all of them is bound by."""
        return min((g for _, g in self.members), key=lambda g: g.usable_gib.value)

    @property
    def memory_known(self) -> bool:
        return all(g.memory_known for _, g in self.members)

    @property
    def mixed(self) -> bool:
        return len({g.name for _, g in self.members}) > 1

    @property
    def name(self) -> str:
        return " + ".join(f"{n}x{g.name}" for n, g in self.members)


class _Memory(msgspec.Struct, frozen=True):
    nominal_gb: float
    usable_gib: float
    source: Source
    note: str
    rare: bool = False


class _Device(msgspec.Struct, frozen=True):
    name: str
    aliases: tuple[str, ...]
    vendor: str
    architecture: str
    capability: str | None
    memories: tuple[_Memory, ...]
    bandwidth_gb_s: float | None
    fp16_tflops: float | None
    fp8_tflops: float | None
    fp4_tflops: float | None
    link: str
    link_gb_s: float | None
    mig: tuple[str, ...]
    unified_memory: bool


class _File(msgspec.Struct):
    source: str
    devices: list[_Device]


@cache
def _devices() -> Mapping[str, _Device]:
    """Every name and alias, squeezed -> device."""
    data = resources.files("trimtab.facts.devices").joinpath("devices.json").read_bytes()
    found: dict[str, _Device] = {}
    for device in msgspec.json.decode(data, type=_File).devices:
        for name in (device.name, *device.aliases):
            found.setdefault(_squeeze(name), device)
    return found


def gpu_names() -> tuple[str, ...]:
    """The table's own names, in its order."""
    return tuple(dict.fromkeys(d.name for d in _devices().values()))


def cpu(memory_gib: float) -> GpuSet:
    """vLLM's CPU back end on a host with this much memory; the KV cache is what VLLM_CPU_KVCACHE_SPACE says."""
    usable = Derived(memory_gib, "GiB", "host memory", "declared", note="vLLM's CPU back end")
    return GpuSet(((1, Gpu("CPU", "CPU", "CPU", None, memory_gib / GIB_PER_GB, usable, link="none")),))


def parse_gpus(spec: str) -> GpuSet:
    """Read "8xA10", "H200", "2xH100-80", "4xRTX A6000 48GB", "24GiB", "RTX 5070 Ti 16GB + RTX 5090 32GB", "Turing",
    "2x sm_75", "8 GPUs". What stands in parentheses is a remark, unless nothing else tells the card. Cards named by
    their generation or number alone have no known memory (`memory_known`).

    UsageError: an unknown name (with the nearest known one), or no name.
    """
    plain = re.sub(r"\([^)]*\)", " ", spec).strip()
    if not plain:
        raise UsageError(msg("the GPU spec {spec} names no GPU", spec=repr(spec)), hint=_HINT)
    members: list[tuple[int, Gpu]] = []
    notes: list[Message] = []
    if _tells_more_with_its_remark(plain, spec):
        plain = spec.replace("(", " ").replace(")", " ")
    for part in re.split(r"[,;&]|\s\+\s| and |\+(?=\s*\d+\s*[x×*])", plain):
        count, gpu, said = _member(part.strip(), spec)
        notes += said
        if members and members[-1][1].name == _A_GPU and _counted(part.strip())[1] == part.strip():
            members[-1] = (members[-1][0], gpu)  # "4 GPUs, compute capability 8.6": the words tell which
        elif members and members[-1][1] == gpu:
            members[-1] = (members[-1][0] + count, gpu)
        else:
            members.append((count, gpu))
    if len({g.name for _, g in members}) > 1:
        notes.append(msg("mixed GPUs: {names}; the smallest sets the budget", names=GpuSet(tuple(members)).name))
    return GpuSet(tuple(members), tuple(notes))


def _tells_more_with_its_remark(plain: str, spec: str) -> bool:
    """Whether "Turing (sm_75)" or "cards (24GiB)" is better read with what stands in parentheses."""
    if not _squeeze(_NOISE.sub(" ", plain)):
        return True
    generation, rest = read_generation(plain)
    inside = " ".join(re.findall(r"\(([^)]*)\)", spec))
    return generation is not None and not _nameable(rest) and read_generation(inside)[0] is not None


def _nameable(text: str) -> str:
    """What is left of a text, squeezed, without counts, amounts and words that name no card."""
    return _squeeze(_NOISE.sub(" ", _AMOUNT.sub(" ", _COUNT.sub(" ", text))))


_HINT = msg("Write a count and a name, such as 2xH100-80, or an amount of memory, such as 24GiB.")
_COUNT = re.compile(r"^\s*(\d+)\s*(?:[x×*]\s*|\s(?=[A-Za-z]))(?=\S)", re.IGNORECASE)
_COUNT_BEHIND = re.compile(r"\s[x×*]\s*(\d+)\s*$", re.IGNORECASE)
_A_GPU = "GPU"
_CARDS = re.compile(r"\b(gpus?|cards?)\b", re.IGNORECASE)
_AMOUNT = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*(gib|gb|g|tib|mib)\b", re.IGNORECASE)
_MIG = re.compile(r"\b(?:mig[- ]?)?(\d)g\.(\d+)gb\b", re.IGNORECASE)
_NOISE = re.compile(
    r"\b(nvidia|amd|intel|geforce|tesla|instinct|gpus?|cards?|graphics|hbm\d?e?|sxm\d?|vgpu|pci-?e|modded|gddr\dx?|mig"
    r"|class|device|rocm|cuda|reported|implied|total|tensor core|edition|server|workstation)\b",
    re.IGNORECASE,
)


def _member(part: str, spec: str) -> tuple[int, Gpu, list[Message]]:
    count, rest = _counted(part)
    if not 1 <= count <= MOST_GPUS:
        raise UsageError(msg("the GPU spec {spec} asks for {count} GPUs", spec=repr(spec), count=count), hint=_HINT)
    slice_ = _MIG.search(rest)
    rest = _MIG.sub(" ", rest)
    amount, unit = _amount(rest)
    name = _AMOUNT.sub(" ", rest).strip(" -_")
    if _known(name) is None and slice_ is None:
        generation, left = read_generation(name)
        if not _nameable(left):
            if amount is None and generation is None and not (_CARDS.search(rest) and rest != part):
                raise UsageError(msg("the GPU spec {spec} names no GPU", spec=repr(spec)), hint=_HINT)
            return count, _unnamed(generation, amount, unit), []
        name = left.strip() if _known(left) is not None else name
    device, amount = _find(name, amount, spec)
    gpu, notes = _with_memory(device, amount, unit)
    if slice_ is not None:
        gpu = _sliced(gpu, slice_)
    return count, gpu, notes


def _counted(part: str) -> tuple[int, str]:
    """How many, and the rest: of "8xA10", "8 GPUs" and "A10 x8"."""
    head = _COUNT.match(part)
    if head is not None:
        return int(head.group(1)), part[head.end() :]
    behind = _COUNT_BEHIND.search(part)
    return (int(behind.group(1)), part[: behind.start()]) if behind else (1, part)


def _amount(text: str) -> tuple[float | None, Literal["GiB", "GB"]]:
    found = _AMOUNT.search(text)
    if found is None:
        return None, "GB"
    value, unit = float(found.group(1)), found.group(2).lower()
    if unit == "mib":
        return value / 1024, "GiB"
    if unit == "tib":
        return value * 1024, "GiB"
    return value, "GiB" if unit == "gib" else "GB"


def _find(name: str, amount: float | None, spec: str) -> tuple[_Device, float | None]:
    """The device of this name; a trailing number ("H100-80", "A40-48Q") is its memory in GB."""
    table = _devices()
    found = _known(name)
    if found is not None:
        return found, amount
    tail = re.match(r"^(.*?)[-_ ]+(\d{1,3})[qc]?$", _NOISE.sub(" ", name).strip(), re.IGNORECASE)
    if tail is not None:
        found = table.get(_squeeze(tail.group(1)))
        if found is not None:
            return found, amount if amount is not None else float(tail.group(2))
    raise _unknown(name, spec)


def _known(name: str) -> _Device | None:
    table = _devices()
    return table.get(_squeeze(name)) or table.get(_squeeze(_NOISE.sub(" ", name)))


def _unknown(name: str, spec: str) -> UsageError:
    squeezed = _squeeze(_NOISE.sub(" ", name))
    near = difflib.get_close_matches(squeezed, list(_devices()), n=3, cutoff=0.5)
    names = list(dict.fromkeys(_devices()[n].name for n in near))
    if names:
        hint = msg("Did you mean {names}? For any other card give its memory: 24GiB.", names=", ".join(names))
    else:
        hint = msg("For a card that is not in the table give its memory: 24GiB.")
    return UsageError(msg("no GPU is called {name} (in {spec})", name=repr(name), spec=repr(spec)), hint=hint)


def _with_memory(device: _Device, amount: float | None, unit: str) -> tuple[Gpu, list[Message]]:
    memory = device.memories[0]
    notes: list[Message] = []
    usual = sorted(m.nominal_gb for m in device.memories if not m.rare)
    if amount is None and len(usual) > 1:
        sizes = " or ".join(f"{n:g}" for n in usual)
        notes.append(
            msg("{name} comes with {sizes} GB; {used:g} GB are reckoned with", name=device.name, sizes=sizes,
                used=memory.nominal_gb)
        )  # fmt: skip
    if amount is not None:
        gb = amount if unit == "GB" else amount / GIB_PER_GB
        memory = min(device.memories, key=lambda m: min(abs(m.nominal_gb - gb), abs(m.nominal_gb - amount)))
        if min(abs(memory.nominal_gb - gb), abs(memory.nominal_gb - amount)) > 0.09 * memory.nominal_gb:
            sizes = " or ".join(f"{m.nominal_gb:g}" for m in sorted(device.memories, key=lambda m: m.nominal_gb))
            notes.append(
                msg("{name} has {sizes} GB, not {amount:g} {unit}; {used:g} GB are reckoned with",
                    name=device.name, sizes=sizes, amount=amount, unit=unit, used=memory.nominal_gb)
            )  # fmt: skip
    return _gpu(device, memory), notes


def _gpu(device: _Device, memory: _Memory) -> Gpu:
    usable = Derived(
        memory.usable_gib, "GiB", "driver total", memory.source, {"nominal_gb": memory.nominal_gb}, memory.note
    )
    return Gpu(
        device.name, device.vendor, device.architecture, device.capability, memory.nominal_gb, usable,
        device.bandwidth_gb_s, device.fp16_tflops, device.fp8_tflops, device.fp4_tflops, device.link, device.link_gb_s,
        device.mig, device.unified_memory,
    )  # fmt: skip


def _sliced(gpu: Gpu, found: re.Match[str]) -> Gpu:
    """A MIG slice: its share of compute, and its nominal memory at the whole card's ratio of usable to nominal."""
    parts, gb = int(found.group(1)), int(found.group(2))
    profile = f"{parts}g.{gb}gb"
    if gpu.mig_profiles and profile not in gpu.mig_profiles:
        raise UsageError(
            msg("{name} has no MIG profile {profile}", name=gpu.name, profile=profile),
            hint=msg("Its profiles are {profiles}.", profiles=", ".join(gpu.mig_profiles)),
        )
    if not gpu.mig_profiles:
        raise UsageError(msg("{name} cannot be split by MIG", name=gpu.name))
    inputs = {"slice_gb": gb, "card_gib": gpu.usable_gib.value, "card_gb": gpu.nominal_gb}
    usable = Derived(
        round(gpu.usable_gib.value * min(1.0, gb / gpu.nominal_gb), 2), "GiB", "card_gib x slice_gb / card_gb",
        "assumed", inputs, "a slice's total was not seen",
    )  # fmt: skip
    return Gpu(
        f"{gpu.name} MIG {profile}", gpu.vendor, gpu.architecture, gpu.capability, gb, usable,
        _share(gpu.bandwidth_gb_s, gb / gpu.nominal_gb), _share(gpu.fp16_tflops, parts / 7),
        _share(gpu.fp8_tflops, parts / 7), _share(gpu.fp4_tflops, parts / 7), "none", None, mig=profile,
    )  # fmt: skip


def _share(whole: float | None, part: float) -> float | None:
    return None if whole is None else whole * min(1.0, part)


def _unnamed(generation: Generation | None, amount: float | None, unit: str) -> Gpu:
    """A card known by its memory, its generation, both, or by being one at all."""
    if amount is None:
        unknown = Derived(0.0, "GiB", "not given", "assumed")
        card = Gpu(_A_GPU, "", "", None, 0.0, unknown)
    else:
        card = _anonymous(amount, unit)
    if generation is None:
        return card
    name = generation.name if amount is None else f"{card.name} {generation.name}"
    return replace(card, name=name, vendor=generation.vendor, capability=generation.capability)


def _anonymous(amount: float, unit: str) -> Gpu:
    """A card known by its memory alone: GiB are taken as usable, GB as nominal with 98% of as many GiB usable."""
    if unit == "GiB":
        usable = Derived(amount, "GiB", "as given", "declared")
        return Gpu(f"{amount:g} GiB", "", "", None, amount / GIB_PER_GB, usable)
    usable = Derived(round(amount * 0.98, 2), "GiB", "0.98 x nominal", "assumed", {"nominal_gb": amount})
    return Gpu(f"{amount:g} GB card", "", "", None, amount, usable)


def _squeeze(name: str) -> str:
    return re.sub(r"[^a-z0-9+]", "", name.lower())
