"""Call a function in a process of its own: what it loads does not stay here, and what hangs can be killed.

`python -m trimtab.supervisor.apart` takes a pickled question on standard input (the function's module and name, its
arguments) and writes a pickled answer on standard output.
"""

from __future__ import annotations

import copyreg
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from types import MappingProxyType
from typing import Any

from trimtab.errors import TrimtabError

PR_SET_PDEATHSIG = 1
_RETURNED, _RAISED = "returned", "raised"


def _alone(end: Callable[[], None]) -> None:
    """Nobody ends it early."""


def call_apart(
    name: str, *arguments: object, bound_s: float | None = None, begun: Callable[[Callable[[], None]], None] = _alone
) -> Any:
    """What the function `name` ("module:function") returns, or the TrimtabError it raises.

    ChildProcessError when the process broke, TimeoutError when it was not done after `bound_s`. Its stderr is ours; it
    ends with the thread that asks. `begun` is given what ends it early.
    """
    argv = [sys.executable, "-P", "-m", "trimtab.supervisor.apart", str(os.getpid())]
    asked = _packed((name, arguments))
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as child:
        try:
            begun(child.kill)
            answer, _ = child.communicate(asked, timeout=bound_s)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"{name} was not done after {bound_s:.0f} s") from error
        finally:
            child.kill()
    if child.returncode != 0:
        raise ChildProcessError(f"{name} ended with exit code {child.returncode}")
    how, *what = pickle.loads(answer)
    if how == _RAISED:
        kind, message, hint = what
        raise kind(message, hint=hint)
    return what[0]


def main() -> int:
    """Answer one question."""
    answer, sys.stdout = sys.stdout.buffer, sys.stderr  # nothing that prints shall come between
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != int(sys.argv[1]):
            return 1
    name, arguments = pickle.load(sys.stdin.buffer)
    module, _, function = name.partition(":")
    try:
        told: tuple[object, ...] = (_RETURNED, getattr(import_module(module), function)(*arguments))
    except TrimtabError as error:
        told = (_RAISED, type(error), error.message, error.hint)
    answer.write(_packed(told))
    answer.flush()
    return 0


def _packed(value: object) -> bytes:
    copyreg.pickle(MappingProxyType, lambda proxy: (_proxy, (dict(proxy),)))  # the values of messages
    return pickle.dumps(value)


def _proxy(values: dict[str, object]) -> MappingProxyType[str, object]:
    return MappingProxyType(values)


if __name__ == "__main__":
    from trimtab.supervisor import apart

    sys.exit(apart.main())  # under its own name: what is pickled names it
