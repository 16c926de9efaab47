"""The card itself failed: Xid, ECC, fallen off the bus, NVLink.

What it does: recognises the driver's messages and CUDA's uncorrectable errors.
Why it matters: No flag helps: the next start on this card may fail again, or answer wrongly.
How to fix: see the kernel's log (dmesg | grep -i xid) and NVIDIA's list for the number; reset or drain the card,
    restart the host, replace it when it comes back.
When to ignore: Xid 13, 31 and 43 are faults of the program and not of the card.
Sources: NVIDIA's catalogue of Xid errors.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.logs import EntryKind
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, TROUBLE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SOFT = ("13", "31", "43")
"""Faults that a program makes."""


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"NVRM: Xid.*?: (?P<xid>\d+)|\bXid (?:error )?(?P<plain>\d+)",
        r"(?i)uncorrectable ECC error|fallen off the bus|GPU is lost|ECCUncorrectable|RmInitAdapter "
        r"failed|nvlink.*(?:error|fatal|down)|the launch timed out and was terminated|"
        r"Unable to determine the device handle|(?:UR|ZE)_RESULT_ERROR_DEVICE_LOST|HSA_STATUS_ERROR_FATAL",
        kinds=(*TROUBLE, EntryKind.WARNING),
    )
    if hit is None:
        return
    told = hit.match.groupdict()
    number = told.get("xid") or told.get("plain")
    if number in SOFT:
        return
    yield context.finding(
        hit,
        msg(
            "the card failed{xid}: see dmesg, reset or drain it; no flag of the launch helps",
            zh="显卡故障{xid}：请查看 dmesg，重置或下线该卡；启动参数没有作用",
            xid=f" (Xid {number})" if number else "",
        ),
        SURE,
    )


RULE = Rule(
    code="LOG124",
    name="card-failed",
    severity=Severity.ERROR,
    summary=msg(
        "The card itself failed: Xid, ECC, fallen off the bus, NVLink.", zh="显卡自身故障：Xid、ECC、掉卡或 NVLink。"
    ),
    check=check,
    cause=Cause.GPU_FAULT,
    sources=("https://docs.nvidia.com/deploy/xid-errors/",),
    bad=(
        Example(
            "NVRM: Xid (PCI:0000:3b:00): 79, pid=4121, name=python3, GPU has fallen off the bus.\n",
            at="line 1: NVRM: Xid",
        ),
        Example("torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\n"),
    ),
    good=(Example("NVRM: Xid (PCI:0000:3b:00): 43, pid=4121, name=python3, Ch 00000008\n"),),
)
