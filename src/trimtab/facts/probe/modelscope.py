"""Bring a model from ModelScope by its own client (`modelscope-hub`, an extra: `pip install trimtab[modelscope]`)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from trimtab.errors import HostError, ModelError, TrimtabError, UpstreamError
from trimtab.facts.probe.cached import has_weights
from trimtab.facts.probe.hub_errors import first_line
from trimtab.facts.probe.quiet import importing
from trimtab.facts.probe.repo_files import RepoFile, formats
from trimtab.facts.probe.transfer import Meter, Stopped, TransferObserver, run_all
from trimtab.messages import msg


def fetch_from_modelscope(
    model_id: str,
    free_bytes: Callable[[Path], int],
    observer: TransferObserver,
    choose: Callable[[Sequence[RepoFile]], list[RepoFile]],
    *,
    whole: bool,
    offline: bool,
    revision: str,
) -> Path:
    """As `hub.fetch`, from ModelScope: endpoint, token and cache are its client's (MODELSCOPE_ENDPOINT, _API_TOKEN,
    _CACHE). Its default branch is called master: the hub's `main` means it."""
    try:
        with importing(TQDM_DISABLE="1"):
            from modelscope_hub import HubApi
            from modelscope_hub.errors import HubError
    except ImportError as error:
        raise HostError(
            msg("VLLM_USE_MODELSCOPE is set, but ModelScope's client is not installed"),
            hint=msg("Install it: pip install 'trimtab[modelscope]', or unset VLLM_USE_MODELSCOPE."),
        ) from error
    logging.getLogger("modelscope_hub").setLevel(logging.CRITICAL)
    api, branch = HubApi(), "master" if revision == "main" else revision
    try:
        if offline:
            return _cached(api, model_id, branch, whole=whole)
        return _download(api, model_id, branch, free_bytes, observer, choose, whole=whole)
    except HubError as error:
        raise _explain(error, model_id) from error


def _cached(api: Any, model_id: str, branch: str, *, whole: bool) -> Path:
    found = Path(api.download_repo(model_id, "model", revision=branch, local_files_only=True))
    if whole and not has_weights(found):
        raise _not_cached(model_id)
    return found


def _download(
    api: Any,
    model_id: str,
    branch: str,
    free_bytes: Callable[[Path], int],
    observer: TransferObserver,
    choose: Callable[[Sequence[RepoFile]], list[RepoFile]],
    *,
    whole: bool,
) -> Path:
    listed = api.list_repo_files(model_id, "model", revision=branch)
    files = [RepoFile(f.path, f.size, f.sha256) for f in listed if not f.is_dir]
    chosen = choose(files)
    if whole and not any(f.name.endswith((".safetensors", ".bin", ".pt")) for f in chosen):
        raise ModelError(
            msg("{id} holds no weights on ModelScope; it holds {kinds}", id=model_id, kinds=", ".join(formats(files))),
            hint=msg("Check the id: the weights may lie in another repository of the same owner."),
        )
    meter, stop, found = Meter(sum(f.size or 0 for f in chosen)), threading.Event(), list[Path]()
    cache = _cache_directory()
    need, free = sum(f.size or 0 for f in chosen), free_bytes(cache)
    if need > free:
        raise HostError(
            msg("{id} needs {need:.2f} GiB on disk; {free:.2f} GiB are free in {path}",
                id=model_id, need=need / 2**30, free=free / 2**30, path=cache),
            hint=msg("Free some space, or name a larger disk with MODELSCOPE_CACHE."),
        )  # fmt: skip

    def job(stopping: threading.Event) -> None:
        found.append(
            Path(
                api.download_repo(
                    model_id, "model", revision=branch, allow_patterns=[f.name for f in chosen],
                    progress_callbacks=[partial(_Counter, meter, stopping)],
                )
            )
        )  # fmt: skip

    run_all([job], meter, observer, stop=stop)
    return found[0]


def _cache_directory() -> Path:
    from modelscope_hub.config import get_default_config

    return Path(get_default_config().cache_dir)


class _Counter:
    """What ModelScope's client calls for each file as its bytes come."""

    def __init__(self, meter: Meter, stop: threading.Event, filename: str, file_size: int) -> None:
        self.meter, self.stop, self.name = meter, stop, filename
        meter.place(filename, 0)

    def update(self, size: int) -> None:
        self.meter.add(self.name, size)
        if self.stop.is_set():
            raise Stopped

    def end(self) -> None:
        """The client has the whole file."""


def _not_cached(model_id: str) -> ModelError:
    return ModelError(
        msg("{id} is not in ModelScope's cache, or not whole, and ModelScope may not be asked (HF_HUB_OFFLINE)",
            id=model_id),
        hint=msg("Unset HF_HUB_OFFLINE and run again, or name another cache with MODELSCOPE_CACHE."),
    )  # fmt: skip


def _explain(error: Exception, model_id: str) -> TrimtabError:
    from modelscope_hub import errors

    if isinstance(error, errors.CacheError):
        return _not_cached(model_id)
    if isinstance(error, errors.NotExistError):
        return ModelError(
            msg("ModelScope has no model {id}, or it is private", id=model_id),
            hint=msg("Check the id: ModelScope's owners differ from the hub's at times; or unset VLLM_USE_MODELSCOPE."),
        )
    if isinstance(error, errors.AuthenticationError | errors.PermissionDeniedError):
        return ModelError(
            msg("ModelScope does not let you read {id}: {reason}", id=model_id, reason=first_line(error)),
            hint=msg("Set MODELSCOPE_API_TOKEN, and ask for access on the model's page."),
        )
    if isinstance(error, errors.NetworkError):
        return HostError(
            msg("cannot reach ModelScope: {reason}", reason=first_line(error)),
            hint=msg("Check the network; what has come so far is kept."),
        )
    return UpstreamError(
        msg("ModelScope gave no usable answer for {id}: {reason}", id=model_id, reason=first_line(error)),
        hint=msg("Try again later, or unset VLLM_USE_MODELSCOPE."),
    )
