"""Who lets running requests end when a server is stopped: the engine, where it can, else its supervisor."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from trimtab.engine.command import LaunchCommand
from trimtab.rules.runner import release

FLAG = "shutdown-timeout"
SINCE = (0, 18)
"""From this release on, EngineCore refuses new requests after SIGTERM and lets running ones end for so many seconds
(vllm/v1/engine/core.py _handle_shutdown); 0, the default, cuts them off."""
_RUST = "VLLM_RUST_FRONTEND_PATH"


class EngineDrain(msgspec.Struct, frozen=True):
    """How long the engine lets requests run after SIGTERM, and the `words` that tell it so, when we add them."""

    seconds: float = 0.0
    words: tuple[str, ...] = ()


def engine_drain(command: LaunchCommand, version: str, environ: Mapping[str, str], drain_s: float) -> EngineDrain:
    """What the command says of it holds; else `drain_s`, where this vLLM can.

    With several API servers none of them owns an engine, and each drops its requests at SIGTERM
    (vllm/v1/engine/core_client.py shutdown, 0.18 to 0.33): there the supervisor waits before it asks.
    """
    several = any((command.get(name) or "1") != "1" for name in ("data-parallel-size", "api-server-count"))
    if release(version) < SINCE or several or command.has("headless") or environ.get(_RUST):
        return EngineDrain()
    told = command.get(FLAG)
    if told is not None:
        return EngineDrain(float(told) if told.isdecimal() else 0.0)
    seconds = math.ceil(drain_s)
    return EngineDrain(seconds, (f"--{FLAG}", str(seconds))) if seconds > 0 else EngineDrain()
