"""Find a model on the hub, or in the hub's cache on this machine, and bring what vLLM needs of it here.

The hub's own client (huggingface_hub) does the talking; it is imported only when an id is really looked up, because
that takes a while. It reads some settings once, at import: so all that can differ is passed to it explicitly.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from trimtab.errors import HostError, ModelError, UsageError
from trimtab.facts.probe import cached, hub_errors
from trimtab.facts.probe.hub_settings import Hub, is_model_id
from trimtab.facts.probe.quiet import importing
from trimtab.facts.probe.repo_files import RepoFile, formats, json_files, needed_files, weight_files
from trimtab.messages import msg

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import ModelInfo

    from trimtab.facts.probe.transfer import Meter, TransferObserver

LOOK_UP_S = 15.0
PIECE_BYTES = 1 << 18
MAX_PLAIN_BYTES = 50_000_000_000
"""Larger files come only by Xet (huggingface_hub/constants.py, MAX_HTTP_DOWNLOAD_SIZE)."""


def fetch(model_id: str, hub: Hub, observer: TransferObserver, *, revision: str = "main") -> Path:
    """The directory with all that vLLM needs of the model; downloads what the cache lacks.

    ModelError: gated, missing, misspelt, no weights, not cached while offline. HostError: no network, no disk, a
    transfer that broke for good. UpstreamError: the hub or the mirror fails. UsageError: it refuses the token.
    """
    return _fetch(model_id, hub, observer, revision, needed_files, whole=True)


def fetch_config(model_id: str, hub: Hub, observer: TransferObserver, *, revision: str = "main") -> Path:
    """The directory with the model's JSON files alone: enough to plan and lint. Errors as for `fetch`."""
    return _fetch(model_id, hub, observer, revision, json_files, whole=False)


def _fetch(
    model_id: str,
    hub: Hub,
    observer: TransferObserver,
    revision: str,
    choose: Callable[[Sequence[RepoFile]], list[RepoFile]],
    *,
    whole: bool,
) -> Path:
    if not is_model_id(model_id):
        raise ModelError(
            msg("{id} is not a model id", id=repr(model_id)),
            hint=msg("An id is OWNER/NAME, for example Qwen/Qwen2.5-7B-Instruct; a directory starts with / or ./"),
        )
    _require_sound(hub)
    if hub.modelscope:
        from trimtab.facts.probe.modelscope import fetch_from_modelscope

        return fetch_from_modelscope(
            model_id, hub.free_bytes, observer, choose, whole=whole, offline=hub.offline, revision=revision
        )
    repo = cached.CachedRepo(hub.cache, model_id)
    if hub.offline:
        found = repo.snapshot(revision, whole=whole)
        if found is None:
            raise hub_errors.not_cached(model_id, hub.cache)
        return found
    try:
        return _Download(model_id, hub, repo, observer).run(revision, choose, whole=whole)
    except hub_errors.client_errors() as error:
        problem = hub_errors.explain(error, model_id, hub, revision)
    found = repo.snapshot(revision, whole=whole) if hub_errors.may_use_cache(problem) else None
    if found is None:
        raise problem
    observer.noted(msg("using the copy in the cache, because {reason}", reason=problem.message))
    return found


def _require_sound(hub: Hub) -> None:
    """UsageError for settings that the hub's client would fall over."""
    if not _is_address(hub.endpoint):
        raise UsageError(
            msg("HF_ENDPOINT is {endpoint}, no address of a hub", endpoint=repr(hub.endpoint)),
            hint=msg("Write it as https://HOST, or unset it."),
        )
    if hub.token is not None and not (hub.token.isascii() and hub.token.isprintable() and " " not in hub.token):
        raise UsageError(
            msg("HF_TOKEN holds a blank or a character that no token has; it was not sent"),
            hint=msg("Copy the token again, without what stands around it."),
        )


def _is_address(endpoint: str) -> bool:
    try:
        parts = urlsplit(endpoint)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port beyond 65535 or no number, brackets around no address
        return False


def client(hub: Hub) -> HfApi:
    """The hub's own client, silent. The import takes about half a second: nothing else may import it earlier."""
    # With telemetry on, the client asks the hub for a list of tools that it may run under.
    with importing(HF_HUB_DISABLE_TELEMETRY="1"):
        import huggingface_hub
        from huggingface_hub import constants

    # The client writes and counts in pieces of 10 MiB: so much a cut loses, and so rarely a slow line shows progress.
    constants.DOWNLOAD_CHUNK_SIZE = PIECE_BYTES
    logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL)
    token = hub.token if hub.token is not None else huggingface_hub.get_token()
    return huggingface_hub.HfApi(endpoint=hub.endpoint, token=token or False, library_name="trimtab")


class _Download:
    """One model's download: what the repository holds, what the cache lacks, and the transfers."""

    def __init__(self, model_id: str, hub: Hub, repo: cached.CachedRepo, observer: TransferObserver) -> None:
        self.model_id, self.hub, self.repo, self.observer = model_id, hub, repo, observer
        self.api = client(hub)

    def run(self, revision: str, choose: Callable[[Sequence[RepoFile]], list[RepoFile]], *, whole: bool) -> Path:
        info = self._look_up(revision)
        files = [
            RepoFile(s.rfilename, s.size, s.lfs.sha256 if s.lfs is not None else None) for s in info.siblings or []
        ]
        if whole and not weight_files(files):
            raise _no_weights(self.model_id, files)
        if not any(f.name == "config.json" for f in files):
            raise _no_config(self.model_id, files)
        commit = info.sha or revision
        chosen = choose(files)
        missing = [f for f in chosen if not (self.repo.pointer(commit, f.name)).exists()]
        if missing:
            self._check_disk(missing)
            self._transfer(commit, missing)
        self.repo.write_ref(revision, commit)
        return self.repo.directory(commit)

    def _look_up(self, revision: str) -> ModelInfo:
        try:
            return self.api.model_info(self.model_id, revision=revision, files_metadata=True, timeout=LOOK_UP_S)
        except (ValueError, TypeError, KeyError, AttributeError) as error:  # 200, but not in the words of a hub
            raise hub_errors.no_hub(self.hub, error) from error

    def _check_disk(self, missing: Sequence[RepoFile]) -> None:
        need = sum(f.size or 0 for f in missing) - sum(self._have(f) for f in missing)
        free = self.hub.free_bytes(self.hub.cache)
        if need > free:
            raise HostError(
                msg(
                    "{id} needs {need} more on disk; {free} are free in {path}",
                    id=self.model_id, need=_size(need), free=_size(free), path=self.hub.cache,
                ),
                hint=msg("Free some space, or name a larger disk with HF_HOME."),
            )  # fmt: skip

    def _have(self, file: RepoFile) -> int:
        if file.sha256 is None:
            return 0
        from trimtab.facts.probe.transfer import part_of

        blob = self.repo.blob(file.sha256)
        there = blob if blob.exists() else part_of(blob)
        return there.stat().st_size if there.exists() else 0

    def _transfer(self, commit: str, missing: Sequence[RepoFile]) -> None:
        from trimtab.facts.probe.transfer import Meter, run_all

        stop, meter = threading.Event(), Meter(sum(f.size or 0 for f in missing))
        # The large ones last: a configuration that the hub refuses (gated) ends it before anything large has moved.
        ordered = sorted(missing, key=lambda f: (f.sha256 is not None, f.name))
        jobs = [partial(self._one, commit, file, meter) for file in ordered]
        run_all(jobs, meter, self.observer, stop=stop)

    def _one(self, commit: str, file: RepoFile, meter: Meter, stop: threading.Event) -> None:
        from trimtab.facts.probe.transfer import Source, bar_class, fetch_blob

        if file.sha256 is not None and file.size is not None and file.size <= MAX_PLAIN_BYTES:
            from huggingface_hub import hf_hub_url
            from huggingface_hub.utils._headers import build_hf_headers

            source = Source(
                name=file.name,
                url=hf_hub_url(self.model_id, file.name, revision=commit, endpoint=self.hub.endpoint),
                headers=build_hf_headers(token=self.api.token, library_name="trimtab"),
                size=file.size,
                sha256=file.sha256,
            )
            fetch_blob(source, self.repo.blob(file.sha256), meter, stop)
        # Links the blob into the snapshot; fetches the file when it is small, or too large for plain HTTP.
        self.api.hf_hub_download(
            self.model_id, file.name, revision=commit, cache_dir=self.hub.cache,
            tqdm_class=bar_class(file.name, meter, stop),
        )  # fmt: skip


def _size(count: int) -> str:
    return f"{count / 2**30:.2f} GiB" if count >= 2**30 else f"{count / 2**20:.2f} MiB"


def _no_config(model_id: str, files: Sequence[RepoFile]) -> ModelError:
    if any(f.name.endswith(".gguf") or f.name == "adapter_config.json" for f in files):
        return _no_weights(model_id, files)
    return ModelError(
        msg("{id} holds no config.json; it holds {kinds}", id=model_id, kinds=", ".join(formats(files)) or "-"),
        hint=msg("Check the id: vLLM serves models in the format of transformers, which have one."),
    )


def _no_weights(model_id: str, files: Sequence[RepoFile]) -> ModelError:
    if any(f.name.endswith(".gguf") for f in files):
        return ModelError(
            msg("{id} holds GGUF files alone, no weights that vLLM loads by default", id=model_id),
            hint=msg("Take the original model: its card names it as base model."),
        )
    if any(f.name == "adapter_config.json" for f in files):
        return ModelError(
            msg("{id} is a LoRA adapter, not a model", id=model_id),
            hint=msg("Serve its base model with --enable-lora and --lora-modules NAME={id}.", id=model_id),
        )
    return ModelError(
        msg(
            "{id} holds no weights (*.safetensors, *.bin, *.pt); it holds {kinds}",
            id=model_id, kinds=", ".join(formats(files)) or msg("nothing"),
        ),
        hint=msg("Check the id: the weights may lie in another repository of the same owner."),
    )  # fmt: skip
