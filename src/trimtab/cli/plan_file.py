"""Read a plan that `trimtab plan --json` wrote, and refuse what only looks like one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trimtab.errors import UsageError
from trimtab.messages import Message, msg

PLAN_SCHEMA = "trimtab.plan/1"
_BEGINS_LIKE_A_PLAN = re.compile(rb'\s*\{\s*"schema"\s*:\s*"trimtab\.')


def plan_in(path: Path, data: bytes) -> Mapping[str, Any] | None:
    """The plan in `data`, the content of `path`; None when it is something else.

    UsageError: a report of another schema, or a plan that is cut off or holds no `vllm serve`.
    """
    found = _json_object(data)
    if found is None:
        if path.suffix == ".json" and _BEGINS_LIKE_A_PLAN.match(data):
            raise _damaged(path)
        return None
    schema = found.get("schema")
    if not isinstance(schema, str) or not schema.startswith("trimtab."):
        return None
    if schema != PLAN_SCHEMA:
        raise UsageError(
            msg("{file} is of schema {schema}; a plan is of {wanted}", file=path, schema=schema, wanted=PLAN_SCHEMA),
            hint=_anew(path),
        )
    words, env = found.get("command"), found.get("env") or {}
    good = isinstance(words, list) and all(isinstance(word, str) for word in words) and words[:2] == ["vllm", "serve"]
    if not good or not isinstance(env, dict) or not all(isinstance(value, str) for value in env.values()):
        raise _damaged(path)
    return found


def made_for(plan: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The vLLM ("0.19.1") and the cards ("8xA10 22.05GiB") that a plan was made for; None of what it does not tell."""
    told = plan.get("budget")
    if not isinstance(told, dict):
        return None, None
    version, gpu = told.get("vllm"), told.get("gpu")
    cards = None
    if isinstance(gpu, dict) and {"name", "count", "total_gib"} <= gpu.keys():
        on_cpu = str(gpu["name"]).lower() == "cpu"
        cards = "cpu" if on_cpu else f"{gpu['count']}x{gpu['name']} {gpu['total_gib']}GiB"
    return (version if isinstance(version, str) else None), cards


def is_config(data: bytes) -> bool:
    """Whether `data` is the config.json of a model."""
    found = _json_object(data)
    return found is not None and ("architectures" in found or "model_type" in found)


def _json_object(data: bytes) -> Mapping[str, Any] | None:
    import msgspec

    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return None
    try:
        found = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _damaged(path: Path) -> UsageError:
    return UsageError(
        msg("{file} is a damaged plan: it is cut off, or its command or env is not one", file=path), hint=_anew(path)
    )


def _anew(path: Path) -> Message:
    return msg("Make a plan anew: trimtab plan MODEL --json > {file}", file=path)
