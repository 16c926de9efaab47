"""The shape of this user's hub token, and whether the hub lets it in to a model; the token itself is never kept."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from trimtab.facts.host import Token
from trimtab.facts.probe.hub_settings import Hub
from trimtab.facts.probe.repo_files import RepoFile, needed_files

VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
PREFIXES = ("hf_", "api_org_")
ASK_S = 5.0


class About(msgspec.Struct, frozen=True):
    """What the hub tells anyone of a model: whether it is gated, and the bytes of what vLLM needs of it."""

    gated: bool | None = None
    size_bytes: int | None = None


def read_token(environ: Mapping[str, str]) -> Token | None:
    """As huggingface_hub finds it (utils/_auth.py 2.4): the variables first, then the file of `hf auth login`."""
    for name in VARIABLES:
        if environ.get(name, "").strip():
            return _shape(environ[name], name)
    home = environ.get("HF_HOME") or os.path.join(environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    file = Path(os.path.expanduser(environ.get("HF_TOKEN_PATH") or os.path.join(home, "token")))
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return _shape(text, str(file)) if text.strip() else None


def ask_about(model_id: str, hub: Hub) -> About:
    """One question to the hub, bounded in time; nothing is known where it does not answer."""
    import httpx2

    headers = {"Authorization": f"Bearer {hub.token}"} if hub.token and hub.token.isascii() else {}
    try:
        answer = httpx2.get(
            f"{hub.endpoint}/api/models/{model_id}", params={"blobs": "true"}, timeout=ASK_S, headers=headers
        )
        value = answer.json() if answer.status_code == 200 else None
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError):
        return About()
    if not isinstance(value, dict):
        return About()
    files = [RepoFile(str(f["rfilename"]), f.get("size")) for f in value.get("siblings") or () if f.get("rfilename")]
    size = sum(f.size or 0 for f in needed_files(files)) if files else 0
    gated = value.get("gated")
    return About(None if gated is None else bool(gated), size or None)


def _shape(text: str, found: str) -> Token:
    token = text.replace("\r", "").replace("\n", "").strip()
    return Token(
        found=found,
        has_blank=any(c.isspace() for c in token),
        has_quotes=token[:1] in "\"'" or token[-1:] in "\"'",
        known_prefix=token.strip("\"'").startswith(PREFIXES),
        length=len(token),
    )
