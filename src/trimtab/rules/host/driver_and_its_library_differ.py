"""The NVIDIA driver in the kernel and its library are of different versions.

What it does: reads NVML's answer NVML_ERROR_LIB_RM_VERSION_MISMATCH.
Why it matters: the driver was updated while it ran: nothing can open a card until the new module is loaded.
How to fix: restart the host, or unload and load the driver's modules; in a container restart it with the host's
    present driver.
When to ignore: never: no CUDA program starts.
Sources: nvml.h (NVML_ERROR_LIB_RM_VERSION_MISMATCH, 18).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    if context.record.gpu_trouble == "mismatch":
        yield Finding(
            msg(
                "the NVIDIA driver in the kernel is of another version than its library, so no card can be opened: "
                "restart the host",
                zh="内核中的 NVIDIA 驱动与其库版本不同，无法打开任何卡：请重启主机",
            ),
            severity=None if context.record.on_gpu else Severity.INFO,
        )


RULE = Rule(
    code="HST005",
    name="driver-and-its-library-differ",
    severity=Severity.ERROR,
    summary=msg(
        "The NVIDIA driver in the kernel and its library are of different versions.",
        zh="内核里的 NVIDIA 驱动与它的库版本不同。",
    ),
    check=check,
    sources=("https://docs.nvidia.com/deploy/nvml-api/",),
    bad=(
        Example(
            '{"pci_gpus": 1, "gpu_trouble": "mismatch"}\n',
        ),
    ),
    good=(
        Example(
            '{"pci_gpus": 1, "cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, '
            '"free_bytes": 23300197580}]}\n',
        ),
    ),
)
