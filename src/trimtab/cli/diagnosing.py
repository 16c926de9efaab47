"""The doctor beside a supervised server: what a start's failure is said to be, and what `up` shows of it."""

from __future__ import annotations

import sys

from trimtab.cli.examining import examined
from trimtab.cli.keeping import Keep
from trimtab.cli.launch import Launch
from trimtab.cli.patient import Patient, bound_of, pinned_names
from trimtab.cli.settings import lang
from trimtab.supervisor.environments import vllm_argv
from trimtab.supervisor.launching import Diagnosis, Failure


class Doctor:
    """Diagnoses every failure of one server; `last` is what to show of the newest one."""

    def __init__(self, launch: Launch, keep: Keep, devices: tuple[str, ...]) -> None:
        self._launch, self._keep, self._devices = launch, keep, devices
        self.last = ""

    def __call__(self, failure: Failure) -> Diagnosis:
        """The likeliest cause out of the server's log; the log's most telling lines where no rule knows it."""
        found = examined(failure, self._patient())
        self.last = found.shown
        return found.diagnosis

    def _patient(self) -> Patient:
        from trimtab.cli.gpus import cpu_set, gpu_set
        from trimtab.facts.probe.gpus import read_gpus

        cards = read_gpus().cards if self._devices else ()
        return Patient(
            program=len(vllm_argv(self._launch.engine)),
            vllm=self._launch.engine.version,
            gpus=gpu_set(cards, self._devices) if cards else cpu_set() if not self._devices else None,
            lang=lang(),
            heal=self._keep.heal,
            keep=tuple(bound_of(text) for text in self._keep.bounds),
            pinned=pinned_names(self._keep.pins),
        )


def show_diagnosis(shown: str) -> None:
    """The likeliest cause on stderr: its sentence, the lines that show it, the command to start with instead."""
    if shown:
        print(shown, file=sys.stderr, flush=True)
