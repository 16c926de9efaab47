"""The hub's cache on this machine, in the layout that huggingface_hub documents (blobs, refs, snapshots)."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import msgspec

_COMMIT = re.compile(r"[0-9a-f]{40}")


class CachedRepo(msgspec.Struct, frozen=True):
    """One model's folder in the cache; it need not exist."""

    cache: Path
    model_id: str

    @property
    def folder(self) -> Path:
        return self.cache / ("models--" + self.model_id.replace("/", "--"))

    def blob(self, etag: str) -> Path:
        return self.folder / "blobs" / etag

    def directory(self, commit: str) -> Path:
        return self.folder / "snapshots" / commit

    def pointer(self, commit: str, name: str) -> Path:
        return self.directory(commit) / name

    def write_ref(self, revision: str, commit: str) -> None:
        """Note that `revision` is at `commit`, after the files are there: readers without network go by it."""
        ref = self.folder / "refs" / revision
        if revision == commit or (ref.is_file() and ref.read_text(encoding="ascii") == commit):
            return
        ref.parent.mkdir(parents=True, exist_ok=True)
        fresh = ref.with_name(f".{ref.name}.{os.getpid()}")
        fresh.write_text(commit, encoding="ascii")
        fresh.replace(ref)

    def snapshot(self, revision: str, *, whole: bool) -> Path | None:
        """The snapshot of `revision` if complete: its config.json and, when `whole`, each shard of its weights."""
        ref = self.folder / "refs" / revision
        commit = ref.read_text(encoding="ascii").strip() if ref.is_file() else revision
        found = self.directory(commit)
        if not (found / "config.json").exists() and not (found / "params.json").exists():
            return None
        return found if not whole or has_weights(found) else None


def has_weights(directory: Path) -> bool:
    """Whether each shard that the index names is there; without an index, whether any weights are."""
    for index in directory.glob("*.index.json"):
        try:
            names = set(json.loads(index.read_bytes())["weight_map"].values())
        except (ValueError, KeyError, TypeError, AttributeError):
            return False
        if names and all((directory / name).exists() for name in names):
            return True
    indexed = any(directory.glob("*.index.json"))
    return not indexed and any(p.exists() for s in ("*.safetensors", "*.bin", "*.pt") for p in directory.glob(s))
