"""Asks an installed vLLM's own argument parser what it takes, once per environment; the answer is kept in a cache."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from trimtab.engine.flags.dump import MARK, dump_script
from trimtab.messages import msg
from trimtab.supervisor.children import run_command
from trimtab.supervisor.present import Present
from trimtab.supervisor.progress import Observer, Progress

ASK_TIMEOUT_S = 240.0
"""A first import of torch from a cold disk takes up to a minute, on a busy machine two."""
TRY_AGAIN_S = 3600.0
"""A failed asking is not repeated for so long: it costs seconds, and the reason may be gone by then."""
QUIET = {"VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "ERROR"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What the parser printed (for `from_parser_dump`), else its last words: "" when no answer came in time."""

    dump: str | None
    reason: str = ""


def parser_of(
    present: Present,
    cache: Path,
    environ: Mapping[str, str],
    progress: Observer,
    timeout_s: float = ASK_TIMEOUT_S,
) -> Answer:
    """The parser's answer, out of `cache` where this very vLLM was asked before. Never raises for what vLLM does."""
    file = cache_file(present, cache)
    failed = file.with_suffix(".failed")
    with suppress(OSError):
        return Answer(file.read_text(encoding="utf-8"))
    with suppress(OSError):
        if time.time() - failed.stat().st_mtime < TRY_AGAIN_S:
            return Answer(None, failed.read_text(encoding="utf-8"))
    progress(Progress(msg("asking vLLM {version} for its flags, once", version=present.version), str(present.python)))
    answer = _asked(present, environ, timeout_s)
    _keep(file, answer.dump) if answer.dump is not None else _keep(failed, answer.reason)
    return answer


def forget(present: Present, cache: Path) -> None:
    """Drop what was kept of this vLLM, so that it is asked anew."""
    cache_file(present, cache).unlink(missing_ok=True)


def cache_file(present: Present, cache: Path) -> Path:
    """Where the answer is kept; another vLLM in the same place, or another script of ours, has another name."""
    key = hashlib.sha256(f"{present.identity}\n{dump_script()}".encode()).hexdigest()[:16]
    return cache / "parsers" / f"{present.version}-{key}.json"


def _asked(present: Present, environ: Mapping[str, str], timeout_s: float) -> Answer:
    kept = {k: v for k, v in environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    with tempfile.TemporaryDirectory() as empty:  # a folder vllm/ beside the user's files must not be imported
        try:
            outcome = run_command(
                [present.python, "-c", dump_script()],
                {**kept, **QUIET, **present.env},
                cwd=Path(empty),
                timeout_s=timeout_s,
            )
        except TimeoutError:
            return Answer(None)
        except OSError as error:
            return Answer(None, error.strerror or str(error))
    told = next((line for line in reversed(outcome.lines) if line.startswith(MARK)), None)
    if outcome.code != 0 or told is None:
        return Answer(None, outcome.last or f"exit status {outcome.code}")
    return Answer(told)


def _keep(file: Path, text: str) -> None:
    """Write in one step; a cache that cannot be written costs time only."""
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_name(f"{file.name}.{os.getpid()}")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(file)
