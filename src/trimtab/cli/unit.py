"""`trimtab up NAME --unit`: a server that was started before as a systemd unit."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping, Sequence
from math import ceil

from trimtab.cli.draining import engine_drain
from trimtab.cli.keeping import Keep, recall
from trimtab.errors import UsageError
from trimtab.messages import msg
from trimtab.plan.render.systemd import Supervised, render_supervised
from trimtab.supervisor.detach import PROGRAM, without_flags

FLAGS = ("--unit", "-d", "--detach")
SLACK_S = 35  # beyond what the engine may take to end: the look at its cause, the last entries
_FAMILIES = ("VLLM_", "HF_", "XDG_", "TRIMTAB_", "CUDA_", "NCCL_")
_ALONE = ("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD")
_SECRET = ("KEY", "TOKEN", "SECRET", "PASSWORD")


def unit_of(name: str | None, keep: Keep, argv: Sequence[str]) -> str:
    """The unit that runs `trimtab argv` (without --unit). UsageError when `name` is no server of before.

    By its name alone a server comes back as it was: same key, address and cards, and the parameters changed meanwhile.
    """
    recovered = recall(name) if name is not None else None
    if name is None or recovered is None:
        raise UsageError(
            msg("--unit takes the name of a server that was started before"),
            hint=msg("Start it once: trimtab up MODEL --name NAME; then: trimtab up NAME --unit"),
        )
    launch = recovered.launch
    drain = engine_drain(launch.command, launch.engine.version, {**os.environ, **launch.env}, keep.drain_s)
    return render_supervised(
        Supervised(
            name=name,
            words=(*PROGRAM, *without_flags(argv, FLAGS)),
            env=_environment(os.environ),
            user=_user(),
            directory=str(launch.directory),
            stop_s=ceil(keep.limits(drain.seconds).end_s) + SLACK_S,
        )
    )


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What the engine and Trimtab read of this shell's environment, but for secrets: a unit can be read by all."""
    return {
        name: value
        for name, value in sorted(environ.items())
        if (name.startswith(_FAMILIES) or name in _ALONE)
        and not any(word in name for word in _SECRET)
        and not name.startswith("XDG_RUNTIME")
    }


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
