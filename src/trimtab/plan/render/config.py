"""vLLM's own configuration file, for `vllm serve --config FILE`."""

from __future__ import annotations

import re
from typing import Any

from trimtab.engine.command import FlagUse
from trimtab.plan.render.launch import Launch
from trimtab.plan.render.yamltext import dump

NUMBER = re.compile(r"0|[1-9]\d*|0\.\d*[1-9]")
"""Numbers that come back from YAML as they were written."""


def render(launch: Launch) -> str:
    """One key a flag. Environment variables have no place in it: they stand in a comment."""
    about = [f"{launch.about} Start: vllm serve --config FILE"]
    about += [f"In the environment: {name}={value}" for name, value in launch.env.items()]
    keys: dict[str, Any] = {"model": launch.model}
    for flag in launch.flags:
        keys[f"{'no-' if flag.negated else ''}{flag.dotted}"] = _value(flag)
    return dump([keys], about)


def _value(flag: FlagUse) -> Any:
    if flag.value is None:
        return True
    return [_scalar(v) for v in flag.values] if len(flag.values) > 1 else _scalar(flag.value)


def _scalar(text: str) -> Any:
    if NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    return text
