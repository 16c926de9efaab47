"""Devices that vLLM runs on, and the reading of what people call them ("8xA10", "2xH100-80", "24GiB")."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal

import msgspec
from msgspec.structs import replace

from trimtab.errors import UsageError
from trimtab.facts.derived import Derived
from trimtab.facts.devices.table import NOT_READ, Device, Memory, by_name, devices, sources, squeeze
from trimtab.facts.generations import Generation, read_generation
from trimtab.messages import Message, msg

GIB_PER_GB = 1e9 / (1 << 30)
MOST_GPUS = 4096


_NONE: Mapping[str, float | None] = MappingProxyType({})
_NONE_READ: Mapping[str, str] = MappingProxyType({})


class Gpu(msgspec.Struct, frozen=True):
    """One device. `usable_gib` is the total that its driver reports; a figure not among `sources` is assumed.

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
    link: str = "PCIe"
    link_gb_s: float | None = None
    """Of one card, both directions together."""
    mig_profiles: Mapping[str, float | None] = _NONE
    """Profile -> GiB as the driver lists them; None where they were not seen."""
    unified_memory: bool = False
    mig: str = ""
    sources: Mapping[str, str] = _NONE_READ
    """Figure ("capability", "bandwidth_gb_s", "tflops", "link", "mig") -> what it was read in; missing where nothing
    was."""
    tflops: float | None = None
    """Dense peak of the tensor cores in 16 bit with 32-bit sums; None where no source was read."""

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
    counted: bool = True
    """False where a generation stands alone ("Turing"): how many cards there are is not said."""

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


def gpu_names() -> tuple[str, ...]:
    """The table's own names, in its order."""
    return tuple(d.name for d in devices())


def cpu(memory_gib: float) -> GpuSet:
    """vLLM's CPU back end on a host with this much memory; the KV cache is what VLLM_CPU_KVCACHE_SPACE says."""
    usable = Derived(memory_gib, "GiB", "host memory", "declared", note="vLLM's CPU back end")
    return GpuSet(((1, Gpu("CPU", "CPU", "CPU", None, memory_gib / GIB_PER_GB, usable, link="none")),))


def parse_gpus(spec: str) -> GpuSet:
    """Read "8xA10", "H200", "2xH100-80", "RTX4090*2", "H100:8", "24GiB", "A10 + RTX 5090 32GB", "3090 双卡".

    Cards named by their generation ("Turing", "2x sm_75") or number ("8 GPUs") alone have no known memory.
    What stands in parentheses is a remark, unless it is an amount of memory or all that tells the card.
    UsageError: an unknown name (with the nearest known one), or no name.
    """
    text = unicodedata.normalize("NFKC", spec).replace("_", " ")
    plain = _REMARK.sub(" ", _AMOUNT_IN_PARENTHESES.sub(r" \1 ", text)).strip()
    if not plain:
        raise UsageError(msg("the GPU spec {spec} names no GPU", spec=repr(spec)), hint=_HINT)
    members: list[tuple[int, Gpu]] = []
    notes: list[Message] = []
    if _tells_more_with_its_remark(plain, text):
        plain = text.replace("(", " ").replace(")", " ")
    for part in re.split(r"[,;&]|\s\+\s| and |\+(?=\s*\d+\s*[x×*])", plain):
        count, gpu, said = _member(part.strip(), spec)
        notes += said
        if members and members[-1][1].name == _A_GPU and not list(_counted(part.strip())):
            members[-1] = (members[-1][0], gpu)  # "4 GPUs, compute capability 8.6": the words tell which
        elif members and members[-1][1] == gpu:
            members[-1] = (members[-1][0] + count, gpu)
        else:
            members.append((count, gpu))
    if len({g.name for _, g in members}) > 1:
        notes.append(msg("mixed GPUs: {names}; the smallest sets the budget", names=GpuSet(tuple(members)).name))
    alone = len(members) == 1 and not members[0][1].memory_known and members[0][0] == 1
    return GpuSet(tuple(members), tuple(notes), counted=not alone or plain.strip()[:1].isdigit())


def _tells_more_with_its_remark(plain: str, text: str) -> bool:
    """Whether "Turing (sm_75)" or "cards (24GiB)" is better read with what stands in parentheses."""
    if not squeeze(_NOISE.sub(" ", re.sub(r"^\d+\s*[x×*]", "", plain))):
        return True
    generation, rest = read_generation(plain)
    inside = " ".join(re.findall(r"\(([^)]*)\)", text))
    return generation is not None and not _nameable(rest) and read_generation(inside)[0] is not None


def _nameable(text: str) -> str:
    """What is left of a text, squeezed, without counts, amounts and words that name no card."""
    rest = next((rest for _, rest in _counted(text.strip())), text)
    return squeeze(_NOISE.sub(" ", _AMOUNT.sub(" ", rest)))


_HINT = msg("Write a count and a name, such as 2xH100-80, or an amount of memory, such as 24GiB.")
_UNITS = "gib|gb|g|tib|mib"
_AMOUNT = re.compile(rf"(?<![\w.])(\d+(?:\.\d+)?)\s*({_UNITS})\b", re.IGNORECASE)
_REMARK = re.compile(r"\([^)]*\)")
_AMOUNT_IN_PARENTHESES = re.compile(rf"\(\s*(\d+(?:\.\d+)?\s*(?:{_UNITS}))\s*\)", re.IGNORECASE)
_MIG = re.compile(r"\b(?:mig[- ]?)?(\d)g\.(\d+)gb\b", re.IGNORECASE)
_NOISE = re.compile(
    r"\b(nvidia|amd|intel|geforce|tesla|instinct|gpus?|cards?|graphics|hbm\d?e?|sxm\d?|vgpu|pci-?e|modded|gddr\dx?|mig"
    r"|class|device|rocm|cuda|reported|implied|total|tensor core|edition|server|workstation|nodes?|each|vram|nvgpu)\b"
    r"|显卡|显存",
    re.IGNORECASE,
)
_MAKER = re.compile(r"\b(nvidia|amd|intel|geforce|instinct)\b", re.IGNORECASE)
_PORTABLE = re.compile(r"^\s*(mobile|laptop|notebook)\s+(.*?)\s*$", re.IGNORECASE)
_FAMILY = re.compile(r"\b(blackwell|hopper|ampere|turing|volta|lovelace|generation|oam|founders|oc)\b", re.IGNORECASE)
_NUMBERS = {
    "single": 1, "dual": 2, "two": 2, "four": 4, "quad": 4, "eight": 8,
    "单": 1, "一": 1, "双": 2, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8,
}  # fmt: skip
_WORD = "|".join(_NUMBERS)
_A_GPU = "GPU"
_CARDS = re.compile(r"\b(gpus?|cards?)\b", re.IGNORECASE)
_COUNTS = (
    re.compile(r"^(?P<count>\d+)\s*[x×*]\s*(?P<rest>\S.*)$", re.IGNORECASE),
    re.compile(rf"^(?P<count>\d{{1,3}})\s(?!(?:{_UNITS})\b)(?P<rest>(?:[a-z]|\d{{4}}\b).*)$", re.IGNORECASE),
    re.compile(rf"^(?P<count>\d+|{_WORD})\s*(?:[张块个片]|卡(?!\S*卡))\s*(?P<rest>\S.*)$"),
    re.compile(rf"^(?P<count>{_WORD})\s+(?P<rest>\S.*)$", re.IGNORECASE),
    re.compile(r"^(?P<rest>.*\S)\s*(?<![rg]t)[x×*:]\s*(?P<count>\d{1,4})$", re.IGNORECASE),  # "RTX 4090" is no count
    re.compile(rf"^(?P<rest>.*\S?)\s*(?<!\d)(?P<count>\d{{1,3}}|{_WORD})\s*[张块卡片]$"),
)
"""How people write a count: before the name or after it."""


def _member(part: str, spec: str) -> tuple[int, Gpu, list[Message]]:
    if re.match(r"-\s*\d", part):
        raise UsageError(msg("the GPU spec {spec} begins with a minus", spec=repr(spec)), hint=_HINT)
    counted = list(_counted(part))
    leading = counted[0] if counted and part[:1].isdigit() else (1, part)
    count, rest = next((r for r in (*counted, (1, part)) if _known(r[1])), leading)
    if not 1 <= count <= MOST_GPUS:
        raise UsageError(msg("the GPU spec {spec} asks for {count} GPUs", spec=repr(spec), count=count), hint=_HINT)
    slice_ = _MIG.search(rest)
    rest = _MIG.sub(" ", rest)
    device = _named(rest)
    if device is not None:
        return count, *_with_slice(device, None, "GB", slice_)
    amount, unit = _amount(rest)
    name = _AMOUNT.sub(" ", rest).strip(" -_")
    found = _find(name)
    if found is None and slice_ is None:
        generation, left = read_generation(name)
        found = _find(left.strip())
        if found is None and not _nameable(left):
            if amount is None and generation is None and not (_CARDS.search(rest) and rest != part):
                raise UsageError(msg("the GPU spec {spec} names no GPU", spec=repr(spec)), hint=_HINT)
            return count, _unnamed(generation, amount, unit), []
    if found is None:
        raise _unknown(name, spec)
    return count, *_with_slice(found[0], amount if amount is not None else found[1], unit, slice_)


def _counted(part: str) -> Iterator[tuple[int, str]]:
    for pattern in _COUNTS:
        found = pattern.match(part)
        if found is not None:
            count = found["count"].lower()
            yield _NUMBERS.get(count) or int(count), found["rest"].strip()


def _known(text: str) -> bool:
    """Whether the text tells a card: its name, generation or memory, or that it is one."""
    text = _MIG.sub(" ", text)
    name = _AMOUNT.sub(" ", text).strip(" -_")
    if _named(text) is not None or _find(name) is not None:
        return True
    generation, left = read_generation(name)
    told = generation is not None or _AMOUNT.search(text) is not None or _CARDS.search(text) is not None
    return _find(left.strip()) is not None or (told and not squeeze(_NOISE.sub(" ", left)))


def _with_slice(
    device: Device, amount: float | None, unit: str, slice_: re.Match[str] | None
) -> tuple[Gpu, list[Message]]:
    gpu, notes = _with_memory(device, amount, unit)
    return (gpu if slice_ is None else _sliced(gpu, slice_)), notes


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


def _named(name: str) -> Device | None:
    """The device that is called this, once words that say nothing of the kind are taken off."""
    bare = re.sub(r"(?<=\d)'?s$", "", _NOISE.sub(" ", name).strip(" -_"), flags=re.IGNORECASE)
    portable = _PORTABLE.sub(r"\2 laptop", bare)
    forms = (name, _MAKER.sub(" ", name), _NOISE.sub(" ", name), bare, _FAMILY.sub(" ", bare), portable)
    return next((found for form in forms if (found := by_name().get(squeeze(form))) is not None), None)


def _find(name: str) -> tuple[Device, float | None] | None:
    """The device of this name; a trailing number ("H100-80", "A40-48Q") is its memory in GB."""
    device = _named(name)
    if device is not None:
        return device, None
    tail = re.match(r"^(.*?)[-_ ]+(\d{1,3})[qc]?$", _NOISE.sub(" ", name).strip(), re.IGNORECASE)
    device = _named(tail.group(1)) if tail is not None else None
    return None if device is None or tail is None else (device, float(tail.group(2)))


def _unknown(name: str, spec: str) -> UsageError:
    squeezed = squeeze(_NOISE.sub(" ", name))
    near = difflib.get_close_matches(squeezed, list(by_name()), n=3, cutoff=0.55)
    digits = squeezed.replace("o", "0")
    names = list(dict.fromkeys(by_name()[n].name for n in (digits, *near) if n in by_name()))[:3]
    if names:
        hint = msg("Did you mean {names}? For any other card give its memory: 24GiB.", names=", ".join(names))
    else:
        hint = msg("For a card that is not in the table give its memory: 24GiB.")
    return UsageError(msg("no GPU is called {name} (in {spec})", name=repr(name), spec=repr(spec)), hint=hint)


def _with_memory(device: Device, amount: float | None, unit: str) -> tuple[Gpu, list[Message]]:
    memory = device.memories[0]
    notes: list[Message] = []
    usual = sorted(m.nominal_gb for m in device.memories if not m.rare)
    if amount is None and len(usual) > 1:
        sizes = " / ".join(f"{n:g}" for n in usual)
        notes.append(
            msg("{name} comes with {sizes} GB; {used:g} GB are reckoned with", name=device.name, sizes=sizes,
                used=memory.nominal_gb)
        )  # fmt: skip
    if amount is not None:
        gb = amount if unit == "GB" else amount / GIB_PER_GB
        memory = min(device.memories, key=lambda m: min(abs(m.nominal_gb - gb), abs(m.nominal_gb - amount)))
        if min(abs(memory.nominal_gb - gb), abs(memory.nominal_gb - amount)) > 0.09 * memory.nominal_gb:
            sizes = " / ".join(f"{m.nominal_gb:g}" for m in sorted(device.memories, key=lambda m: m.nominal_gb))
            notes.append(
                msg("{name} has {sizes} GB, not {amount:g} {unit}; {used:g} GB are reckoned with",
                    name=device.name, sizes=sizes, amount=amount, unit=unit, used=memory.nominal_gb)
            )  # fmt: skip
    return _gpu(device, memory), notes


def _gpu(device: Device, memory: Memory) -> Gpu:
    read = sources()
    note = memory.note if memory.read == NOT_READ else f"{memory.note}: {read[memory.read]}"
    inputs = {"nominal_gb": memory.nominal_gb}
    usable = Derived(memory.usable_gib, "GiB", "driver total", memory.source, inputs, note)
    return Gpu(
        device.name, device.vendor, device.architecture, device.capability, memory.nominal_gb, usable,
        memory.bandwidth_gb_s or device.bandwidth_gb_s, device.link, device.link_gb_s, device.mig,
        device.unified_memory, sources={k: read[v] for k, v in device.read.items() if v != NOT_READ},
        tflops=device.tflops,
    )  # fmt: skip


def _sliced(gpu: Gpu, found: re.Match[str]) -> Gpu:
    """A MIG slice: the GiB that the driver lists for its profile, else its nominal share of the whole card's."""
    gb = int(found.group(2))
    profile = f"{found.group(1)}g.{gb}gb"
    if gpu.mig_profiles and profile not in gpu.mig_profiles:
        raise UsageError(
            msg("{name} has no MIG profile {profile}", name=gpu.name, profile=profile),
            hint=msg("Its profiles are {profiles}.", profiles=", ".join(gpu.mig_profiles)),
        )
    if not gpu.mig_profiles:
        raise UsageError(msg("{name} cannot be split by MIG", name=gpu.name))
    return Gpu(
        f"{gpu.name} MIG {profile}", gpu.vendor, gpu.architecture, gpu.capability, gb, _slice_total(gpu, profile, gb),
        _share(gpu.bandwidth_gb_s, gb / gpu.nominal_gb), "none", None, mig=profile, sources=gpu.sources,
    )  # fmt: skip


def _slice_total(gpu: Gpu, profile: str, gb: int) -> Derived[float]:
    listed = gpu.mig_profiles[profile]
    if listed is not None:
        note = f"the driver's list of profiles: {gpu.sources.get('mig', '')}"
        return Derived(min(listed, gpu.usable_gib.value), "GiB", "MIG profile", "measured", {"profile": profile}, note)
    inputs = {"slice_gb": gb, "card_gib": gpu.usable_gib.value, "card_gb": gpu.nominal_gb}
    share = round(gpu.usable_gib.value * min(1.0, gb / gpu.nominal_gb), 2)
    return Derived(share, "GiB", "card_gib x slice_gb / card_gb", "assumed", inputs, "a slice's total was not seen")


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
