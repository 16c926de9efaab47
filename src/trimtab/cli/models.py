"""The model that a verb reckons with: a directory's own files, the hub's, or --model-config."""

from __future__ import annotations

import sys
from pathlib import Path

from trimtab.errors import ModelError, UsageError
from trimtab.facts.model import ModelFacts, read_model
from trimtab.facts.probe.model_dir import read_headers, read_json, read_model_dir
from trimtab.facts.probe.transfer import Progress
from trimtab.messages import Message, msg


def model_named(name: str | None, config: Path | None) -> ModelFacts:
    """Facts of the model that a command names; `config` (a config.json or its directory) wins over the name.

    UsageError: neither. ModelError: what is there cannot be read, or the id is not to be had.
    """
    if config is not None:
        return _from_path(config)
    if name is None:
        raise UsageError(
            msg("the command names no model"),
            hint=msg("Name it after vllm serve, or give --model-config DIR."),
        )
    path = Path(name).expanduser()
    if path.exists() or name.startswith((".", "/", "~")):
        return _from_path(path)
    return _from_hub(name)


def _from_path(path: Path) -> ModelFacts:
    if path.is_file():
        facts = read_json(path, msg("Name a model's config.json, or the directory that holds it."))
        return read_model(facts, tensors=read_headers(path.parent))
    files = read_model_dir(path)
    return read_model(files.config, tensors=files.tensors, generation_config=files.generation_config)


def _from_hub(name: str) -> ModelFacts:
    from trimtab.cli.subject import model_directory
    from trimtab.facts.probe.hub import hub_from_environment

    try:
        directory = model_directory(name, hub_from_environment(), _Quiet(), whole=False)
    except ModelError as error:
        raise ModelError(
            error.message, hint=msg("Give its configuration: --model-config DIR with its config.json.")
        ) from error
    return _from_path(directory)


class _Quiet:
    """A config is a few kilobytes: its download is not worth a line."""

    def moved(self, progress: Progress) -> None:
        del progress

    def noted(self, note: Message) -> None:
        print(note, file=sys.stderr)
