"""The reference page of the devices: every figure with what it was read in, or the word assumed."""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.facts.devices.table import NOT_READ, Device, Memory, devices, sources


def page() -> str:
    """docs/gpus.md."""
    keys = {key: number for number, key in enumerate((k for k in sources() if k != NOT_READ), start=1)}
    rows = [row for device in devices() for row in _rows(device, keys)]
    memories = [m for d in devices() for m in d.memories]
    read = sum(m.read != NOT_READ for m in memories)
    return "\n".join([
        "# GPUs", "",
        "What `--gpu` knows. Memory is the total that the driver reports on Linux, in GiB. The number after a figure",
        "is the source that was read; *assumed* stands where none could be. `scripts/docs` makes this page from",
        "`facts/devices/devices.json`.", "",
        f"{len(devices())} devices, {len(memories)} sizes of memory: {read} totals read, the others assumed.",
        "",
        "| device | GB | GiB usable | capability | GB/s | TFLOP/s, 16 bit | link, GB/s | MIG profile: GiB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |", *rows, "",
        "## Sources", "", *(f"{number}. {sources()[key]}" for key, number in keys.items()), "",
    ])  # fmt: skip


def _rows(device: Device, keys: dict[str, int]) -> Iterator[str]:
    def cite(figure: str) -> str:
        key = device.read.get(figure, NOT_READ)
        return "*assumed*" if key == NOT_READ else f"[{keys[key]}]"

    for memory in device.memories:
        capability = f"{device.capability} {cite('capability')}" if device.capability else ""
        speed = memory.bandwidth_gb_s or device.bandwidth_gb_s
        bandwidth = f"{speed:g} {cite('bandwidth_gb_s')}" if speed else ""
        peak = f"{device.tflops:g} {cite('tflops')}" if device.tflops else ""
        link = f"{device.link} {device.link_gb_s:g} {cite('link')}" if device.link_gb_s else device.link
        profiles = ", ".join(name if gib is None else f"{name}: {gib:g}" for name, gib in device.mig.items())
        mig = f"{profiles} {cite('mig')}" if profiles else ""
        cells = (device.name, f"{memory.nominal_gb:g}", _memory(memory, keys), capability, bandwidth, peak, link, mig)
        yield f"| {' | '.join(cells)} |"


def _memory(memory: Memory, keys: dict[str, int]) -> str:
    cited = f"*assumed*: {memory.note}" if memory.read == NOT_READ else f"[{keys[memory.read]}] {memory.note}"
    return f"{memory.usable_gib:g} {cited}"
