"""The draft that a command's speculation names: a directory, a catalogue's model, or an id of the hub or its cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trimtab.cli.paths import path_named
from trimtab.engine.command import LaunchCommand
from trimtab.errors import HostError, ModelError, UsageError
from trimtab.facts.catalogue import lookup as catalogue
from trimtab.facts.drafting import WITHOUT_MODEL, draft_method, read_draft, with_draft
from trimtab.facts.model import ModelFacts
from trimtab.facts.probe.cached import CachedRepo
from trimtab.facts.probe.hub_settings import hub_from_environment, is_model_id
from trimtab.facts.probe.model_dir import read_model_dir
from trimtab.messages import msg
from trimtab.plan.memory.launch import speculation_of

if TYPE_CHECKING:
    from trimtab.facts.probe.transfer import TransferObserver


def with_draft_of(
    command: LaunchCommand, model: ModelFacts, watcher: TransferObserver, *, look_up: bool = True
) -> ModelFacts:
    """The model with its draft beside it, where one is named and can be found and read; `look_up`: asking the hub.

    A draft that stays unknown is among the budget's assumptions.
    """
    speculation = speculation_of(command)
    ref, tokens = speculation.get("model"), speculation.get("num_speculative_tokens")
    given = str(speculation["method"]) if "method" in speculation else None
    if not isinstance(ref, str) or draft_method(given, ref) in WITHOUT_MODEL:
        return model
    try:
        config = _config(ref, watcher, look_up=look_up)
        method = draft_method(given, ref, config)
        draft = read_draft(config, method, tokens if isinstance(tokens, int) else 1, model)
    except (ModelError, UsageError, HostError):
        return model
    return model if draft is None else with_draft(model, draft)


def _config(ref: str, watcher: TransferObserver, *, look_up: bool) -> Mapping[str, Any]:
    path = path_named(ref)
    if path is None:
        raise UsageError(msg("{ref!r} is neither a directory nor a model id", ref=ref))
    if path.exists() or not is_model_id(ref):
        return read_model_dir(path).config
    hub = hub_from_environment()
    snapshot = CachedRepo(hub.cache, ref).snapshot("main", whole=False)
    if snapshot is not None:
        return read_model_dir(snapshot).config
    try:
        return catalogue.find_model(ref).config
    except ModelError:
        if not look_up:
            raise
    from trimtab.facts.probe.hub import fetch_config

    return read_model_dir(fetch_config(ref, hub, watcher)).config
