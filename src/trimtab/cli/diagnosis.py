"""One diagnosis for every verb: a log, and what this host knows of the launch that wrote it, to ranked findings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from trimtab.engine.command import LaunchCommand
from trimtab.engine.logs import Log, read_log
from trimtab.errors import HostError
from trimtab.messages import msg
from trimtab.rules.doctor import Diagnosis, DoctorFacts, diagnose

if TYPE_CHECKING:
    from trimtab.facts.gpu import GpuSet
    from trimtab.facts.model import ModelFacts

CHUNK = 1 << 20


def diagnosis_of(
    log: Path,
    command: LaunchCommand | None = None,
    *,
    exit_status: int | None = None,
    vllm: str | None = None,
    gpus: GpuSet | None = None,
) -> Diagnosis:
    """What the log rules say of a server's log, likeliest first. `exit_status` as Popen tells it (-9: killed).

    `command` is the launch that wrote it; without it, the one that the log prints. HostError when it cannot be read.
    """
    facts = DoctorFacts(command=command, vllm=vllm, gpus=gpus, model_of=model_of)
    return diagnose(read_file(log, exit_status), facts)


def read_file(path: Path, exit_status: int | None = None) -> Log:
    """HostError when it cannot be read."""
    try:
        with path.open("rb") as stream:
            return read_log(chunks(stream), exit_status)
    except OSError as error:
        raise HostError(
            msg("cannot read the log {file}: {reason}", file=path, reason=error.strerror or type(error).__name__),
            hint=msg("A server has a log once its engine was started: trimtab ps --all."),
        ) from error


def chunks(stream: BinaryIO) -> Iterator[bytes]:
    """The stream's bytes, as they come."""
    while chunk := stream.read(CHUNK):
        yield chunk


def model_of(command: LaunchCommand) -> ModelFacts | None:
    """The model's facts from this disk or the catalogue; nothing is fetched, and none is no error."""
    from trimtab.cli.lint import known_model

    return known_model(command, None)
