"""The doctor beside a supervised server: what a start's failure is said to be, and what `up` shows of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from trimtab.cli.diagnosis import diagnosis_of
from trimtab.engine.command import LaunchCommand
from trimtab.rules.doctor import Diagnosis as Found
from trimtab.rules.doctor import must_fail_again
from trimtab.supervisor.launching import Diagnosis, Failure

if TYPE_CHECKING:
    from trimtab.facts.gpu import GpuSet


class Doctor:
    """Diagnoses every failure of one server; `last` is what was found of the newest one."""

    def __init__(self, command: LaunchCommand, vllm: str, devices: tuple[str, ...] = ()) -> None:
        self._command, self._vllm, self._devices = command, vllm, devices
        self.last: Found | None = None

    def __call__(self, failure: Failure) -> Diagnosis:
        """The likeliest cause out of the server's log; the log's most telling lines where no rule knows it."""
        command = LaunchCommand.from_argv(failure.argv) if failure.steps else self._command
        status = None if failure.killed_for is not None else failure.status.returncode
        found = diagnosis_of(
            failure.log_file, command, exit_status=status, vllm=self._vllm or None, gpus=_cards(self._devices)
        )
        self.last = found
        cause = found.cause
        if cause is None or cause.rule.cause is None:
            return Diagnosis(errors=failure.errors)
        from trimtab.cli.format.json import findings_value

        return Diagnosis(
            errors=failure.errors,
            cause=cause.message,
            permanent=None if failure.served else must_fail_again(cause.rule.cause),
            data={"findings": findings_value(found.report, "en", found.vllm)["findings"][:3]},
        )


def show_diagnosis(found: Found | None, lang: str) -> None:
    """The likeliest cause on stderr: its sentence, the lines that show it, the command to start with instead."""
    if found is None or found.cause is None:
        return
    from trimtab.cli.format.doctor import finding_text

    print(finding_text(found.cause, found.command, lang), file=sys.stderr, flush=True)


def _cards(devices: tuple[str, ...]) -> GpuSet | None:
    if not devices:
        return None
    from trimtab.cli.gpus import gpu_set
    from trimtab.facts.probe.gpus import read_gpus

    found = read_gpus()
    return gpu_set(found.cards, devices) if found.cards else None
