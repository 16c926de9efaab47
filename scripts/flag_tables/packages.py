"""Gets the Python source of one vLLM version from the package index, with pip as it is set up on this machine."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

WHEEL_ONLY = ("0.15.1",)  # no source package was published


def unpack(version: str, into: Path) -> Path:
    """The directory that holds `vllm/` of this version, downloaded below `into` unless it is there already."""
    root = into / version
    if not (root / "vllm").is_dir():
        with tempfile.TemporaryDirectory(dir=into) as folder:
            archive = _download(version, Path(folder))
            _extract(archive, root)
    return root


def _download(version: str, folder: Path) -> Path:
    """The archive of `vllm==version`: the source package without running its build, else the wheel."""
    form = ["--only-binary", "vllm"] if version in WHEEL_ONLY else ["--no-binary", "vllm"]
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation", "--no-clean",
        "--dest", str(folder), *form, f"vllm=={version}",
    ]  # fmt: skip
    # pip unpacks a source package, then asks its build for metadata, which fails without torch: the sources stay.
    done = subprocess.run(command, capture_output=True, text=True, env=_environment(folder), check=False)
    for found in (*folder.glob("vllm-*.whl"), *folder.glob("vllm-*.tar.gz"), *folder.glob("pip-download-*/vllm_*")):
        return found
    raise SystemExit(f"vllm {version} could not be downloaded:\n{done.stderr}")


def _environment(folder: Path) -> dict[str, str]:
    import os

    return {**os.environ, "TMPDIR": str(folder)}


def _extract(archive: Path, root: Path) -> None:
    root.mkdir(parents=True, exist_ok=True)
    if archive.is_dir():
        archive.joinpath("vllm").rename(root / "vllm")
    elif archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(root, [n for n in wheel.namelist() if n.startswith("vllm/") and n.endswith(".py")])
    else:
        with tarfile.open(archive) as package:
            for member in package.getmembers():
                inside = member.name.partition("/")[2]
                if inside.startswith("vllm/") and inside.endswith(".py"):
                    member.name = inside
                    package.extract(member, root, filter="data")
