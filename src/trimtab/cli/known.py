"""What is known of a command's model without the network: from this disk, the hub's local cache or the catalogue."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from trimtab.cli.settings import lang
from trimtab.engine.command import LaunchCommand
from trimtab.errors import HostError, ModelError, UsageError

if TYPE_CHECKING:
    from trimtab.facts.model import ModelFacts


def known_model(command: LaunchCommand, config: Path | None) -> ModelFacts | None:
    """Facts of a command's model; None where they cannot be had offline (the rules then say that they need them)."""
    model = _model(command.get("model") or (command.model.text if command.model else None), config)
    return _with_draft(command, model)


@lru_cache(maxsize=512)
def _model(named: str | None, config: Path | None) -> ModelFacts | None:
    if config is None and not named:
        return None
    from trimtab.cli.models import find_model
    from trimtab.cli.notes import Notes

    try:
        return find_model(named, config, Notes(lang()), look_up=False).facts
    except (ModelError, UsageError, HostError):
        if config is not None:
            raise
        return None if named is None or os.path.exists(named) else _catalogued(named)


def _catalogued(named: str) -> ModelFacts | None:
    """What the catalogue has under the last part of a path of another host, or in a placeholder's brackets."""
    from trimtab.facts.catalogue.lookup import find_model

    try:
        return find_model(named).facts()
    except ModelError:
        return None


def _with_draft(command: LaunchCommand, model: ModelFacts | None) -> ModelFacts | None:
    """The model with the draft that the command names, where this machine or the catalogue knows it."""
    if model is None or not any("spec" in use.name for use in command.flags):
        return model
    from trimtab.cli.drafts import with_draft_of
    from trimtab.cli.notes import Notes

    try:
        return with_draft_of(command, model, Notes(lang()), look_up=False)
    except UsageError:
        return model  # a value that is no JSON: a rule's own finding
