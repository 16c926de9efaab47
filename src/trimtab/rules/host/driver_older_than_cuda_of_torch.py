"""The NVIDIA driver is older than the CUDA that the engine's torch was built with.

What it does: compares the newest CUDA that the driver serves with the CUDA runtime in the engine's environment.
Why it matters: a driver serves its own CUDA major version and older ones: torch then reports that the driver is too
    old, or sees no card.
How to fix: update the driver, or install a vLLM built with an older CUDA (trimtab engine install cuda picks one).
When to ignore: with a data-centre card and the cuda-compat package on LD_LIBRARY_PATH.
Sources: NVIDIA's CUDA compatibility guide (minor version compatibility); torch's message of c10/cuda ("The NVIDIA
    driver on your system is too old").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    record = context.record
    built, served = record.packages.cuda, record.cuda
    if built is None or served is None or not record.on_gpu or built[0] <= served[0]:
        return
    yield Finding(
        msg(
            "torch {torch} was built with CUDA {built}; driver {driver} serves CUDA up to {served}",
            zh="torch {torch} 使用 CUDA {built} 构建；驱动 {driver} 最高支持 CUDA {served}",
            torch=record.packages.torch or "?",
            built=f"{built[0]}.{built[1]}",
            driver=record.driver,
            served=f"{served[0]}.{served[1]}",
        ),
        severity=Severity.WARNING if _forward(record.environ) else None,
    )


def _forward(environ: Mapping[str, str]) -> bool:
    """Whether vLLM is told to load NVIDIA's forward compatibility libraries, which serve a newer CUDA (0.17 on)."""
    return environ.get("VLLM_ENABLE_CUDA_COMPATIBILITY", "").strip().lower() in ("1", "true")


RULE = Rule(
    code="HST003",
    name="driver-older-than-cuda-of-torch",
    severity=Severity.ERROR,
    summary=msg(
        "The NVIDIA driver is older than the CUDA that the engine's torch was built with.",
        zh="NVIDIA 驱动比引擎里 torch 所用的 CUDA 旧。",
    ),
    check=check,
    sources=("https://docs.nvidia.com/deploy/cuda-compatibility/",),
    bad=(
        Example(
            '{"driver": "550.54.15", "cuda": [12, 4], "packages": {"torch": "2.11.0", "cuda": [13, 0]}}\n',
        ),
    ),
    good=(
        Example(
            '{"driver": "550.54.15", "cuda": [12, 4], "packages": {"torch": "2.9.1", "cuda": [12, 8]}}\n',
        ),
        Example(
            '{"driver": "580.95.05", "cuda": [13, 0], "packages": {"torch": "2.11.0", "cuda": [13, 0]}}\n',
        ),
    ),
)
