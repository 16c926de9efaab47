"""Directories that a start writes to or reads from: whether they may be written, what is free, on what they lie."""

from __future__ import annotations

import os
from pathlib import Path

from trimtab.facts.host import Disk
from trimtab.facts.probe.model_dir import LFS_POINTER, VOCABULARIES
from trimtab.facts.probe.repo_files import RepoFile, weight_files

POINTER_BYTES = 1024  # the specification allows no longer pointer


def look_at(use: str, path: Path, root: Path = Path("/")) -> Disk:
    """The directory, or the nearest one above it that exists: there it would be made."""
    try:
        existing = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
        about = os.statvfs(existing)
    except OSError as error:
        return Disk(use=use, path=str(path), writable=False, reason=error.strerror or str(error))
    reason = ""
    if not existing.is_dir():
        reason = os.strerror(20)
    elif not os.access(existing, os.W_OK | os.X_OK):
        reason = os.strerror(30) if about.f_flag & os.ST_RDONLY else os.strerror(13)
    return Disk(
        use=use,
        path=str(path),
        free_bytes=about.f_bavail * about.f_frsize,
        writable=not reason,
        reason=reason,
        filesystem=_filesystem(existing, root),
    )


def pointers_in(directory: Path) -> tuple[str, ...]:
    """Names of weights and vocabularies that are Git LFS pointers; none where the directory cannot be read."""
    try:
        files = [RepoFile(entry.name) for entry in directory.iterdir()]
        names = [f.name for f in weight_files(files)] + [n for n in VOCABULARIES if (directory / n).exists()]
        return tuple(sorted(name for name in names if _is_pointer(directory / name)))
    except OSError:
        return ()


def absent_in(directory: Path, *, config: bool = True, weights: bool = True) -> tuple[str, ...]:
    """What of a model is not in its directory: its `config`, its `weights`; () where it cannot be read.

    A GGUF file is both. vLLM 0.33's transformers_utils/config.py takes params.json for Mistral's own config.
    """
    try:
        names = [entry.name for entry in directory.iterdir()]
    except OSError:
        return ()
    if any(name.endswith(".gguf") for name in names):
        return ()
    found = []
    if config and not {"config.json", "params.json"} & set(names):
        found.append("config.json")
    if weights and not weight_files(RepoFile(name) for name in names):
        found.append("weights (*.safetensors, *.bin, *.pt)")
    return tuple(found)


def weight_bytes(directory: Path) -> int | None:
    """Bytes of the weights that vLLM would load; None where there are none to read."""
    try:
        names = weight_files(RepoFile(entry.name) for entry in directory.iterdir())
        return sum((directory / f.name).stat().st_size for f in names) or None
    except OSError:
        return None


def _is_pointer(file: Path) -> bool:
    if not file.is_file() or file.stat().st_size > POINTER_BYTES:
        return False
    with file.open("rb") as stream:
        return stream.read(len(LFS_POINTER)) == LFS_POINTER


def _filesystem(path: Path, root: Path) -> str:
    """The kind of the mount that holds `path`, of the kernel's own list."""
    try:
        lines = (root / "proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    place, best, kind = str(path.resolve()), "", ""
    for words in (line.split(" ") for line in lines):
        if len(words) < 3:
            continue
        mount = words[1].replace("\\040", " ")
        inside = place == mount or place.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, words[2]
    return kind
