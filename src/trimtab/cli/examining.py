"""The examination of a failed start in a process of its own: what it loads and reads does not stay in the supervisor.

Run as `python -m trimtab.cli.examining`: a pickled question on standard input, a pickled answer on standard output.
"""

from __future__ import annotations

import copyreg
import os
import pickle
import subprocess
import sys
from types import MappingProxyType

from trimtab.cli.patient import Examination, Patient
from trimtab.supervisor.launching import Diagnosis, Failure

BOUND_S = 60.0


def examined(failed: Failure, patient: Patient) -> Examination:
    """What `healing.examine` says, asked in a child; without a cause when the child fails or takes too long."""
    argv = [sys.executable, "-m", "trimtab.cli.examining"]
    try:
        done = subprocess.run(
            argv, input=_packed((failed, patient)), capture_output=True, timeout=BOUND_S, check=False, env=os.environ
        )
    except subprocess.TimeoutExpired:
        return _none(failed, f"not done after {BOUND_S:.0f} s")
    if done.returncode != 0:
        return _none(failed, done.stderr.decode("utf-8", "replace").strip().rsplit("\n", 1)[-1])
    answer = pickle.loads(done.stdout)
    assert isinstance(answer, Examination)
    return answer


def _none(failed: Failure, why: str) -> Examination:
    return Examination(Diagnosis(errors=failed.errors, data={"diagnosis_failed": why}))


def main() -> None:
    """Answer one question."""
    from trimtab.cli.healing import examine

    failed, patient = pickle.load(sys.stdin.buffer)
    sys.stdout.buffer.write(_packed(examine(failed, patient)))


def _packed(value: object) -> bytes:
    copyreg.pickle(MappingProxyType, lambda proxy: (_proxy, (dict(proxy),)))  # the values of messages
    return pickle.dumps(value)


def _proxy(values: dict[str, object]) -> MappingProxyType[str, object]:
    return MappingProxyType(values)


if __name__ == "__main__":
    from trimtab.cli import examining

    examining.main()  # under its own name: what is pickled names it
