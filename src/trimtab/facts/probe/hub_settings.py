"""Which hub this user's models come from, and what can be an id there; nothing here talks to it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from trimtab.facts.probe.host import free_disk_bytes

ENDPOINT = "https://huggingface.co"
_PAGE = re.compile(r"https?://[^/]+/([^/?#]+/[^/?#]+)(?:/(?:tree|blob|resolve)/.*|/?)(?:[?#].*)?")
_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


class Hub(msgspec.Struct, frozen=True):
    """Where models come from and where they are kept. `token` None: the one that `hf auth login` left, if any.

    `known_ids`: the ids to suggest for a misspelt one; None: the catalogue's.
    """

    cache: Path
    endpoint: str = ENDPOINT
    token: str | None = None
    offline: bool = False
    modelscope: bool = False
    known_ids: Sequence[str] | None = None
    free_bytes: Callable[[Path], int] = msgspec.field(default=free_disk_bytes)


def hub_from_environment(environ: Mapping[str, str] = os.environ) -> Hub:
    """The hub that the variables name (huggingface_hub/constants.py 2.4): HF_ENDPOINT, HF_TOKEN, HF_HOME, HF_HUB_CACHE,
    HF_HUB_OFFLINE, and VLLM_USE_MODELSCOPE (vllm/envs.py 0.32)."""
    home = environ.get("HF_HOME") or os.path.join(environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    cache = environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE") or os.path.join(home, "hub")
    offline = environ.get("HF_HUB_OFFLINE") or environ.get("TRANSFORMERS_OFFLINE") or ""
    return Hub(
        cache=Path(os.path.expandvars(os.path.expanduser(cache))),
        endpoint=(environ.get("HF_ENDPOINT") or ENDPOINT).rstrip("/"),
        token=environ.get("HF_TOKEN") or environ.get("HUGGING_FACE_HUB_TOKEN") or None,
        offline=offline.upper() in ("1", "ON", "YES", "TRUE"),
        modelscope=environ.get("VLLM_USE_MODELSCOPE", "").strip().lower() in ("1", "true"),
    )


def is_model_id(text: str) -> bool:
    """Whether `text` can be an id: `name` or `owner/name` in the letters that the hub allows."""
    return bool(_ID.fullmatch(text)) and len(text) <= 96 and not any(s in text for s in ("--", ".."))


def id_of_page(text: str) -> str | None:
    """The id in the address of a model's page on a hub; None when `text` is no such address."""
    page = _PAGE.fullmatch(text)
    return page.group(1) if page else None
