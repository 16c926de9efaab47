"""A model as the command line names it: a directory, or an id that the hub or its cache knows; --model-config wins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from trimtab.cli.paths import path_named
from trimtab.errors import HostError, ModelError, UpstreamError, UsageError
from trimtab.facts.catalogue import lookup as catalogue
from trimtab.facts.model import ModelFacts, read_model
from trimtab.facts.probe.cached import CachedRepo
from trimtab.facts.probe.hub_settings import hub_from_environment, id_of_page, is_model_id
from trimtab.messages import Message, msg

if TYPE_CHECKING:
    from trimtab.facts.probe.transfer import TransferObserver


class Model(msgspec.Struct, frozen=True):
    """What a command names (`ref`) and what is known of it. `own_code`: the checkpoint brings code (auto_map)."""

    ref: str
    facts: ModelFacts
    own_code: bool

    @property
    def served_name(self) -> str:
        """The last part of the directory or id: what clients send."""
        return Path(self.ref).name

    @property
    def known(self) -> bool:
        """Whether the architecture is one that Trimtab reckons with."""
        return not any(fact.startswith("architecture") for fact in self.facts.missing)

    @property
    def remote_code(self) -> bool:
        """Whether vLLM needs the checkpoint's own code to serve it."""
        return self.own_code and not self.known


def find_model(
    ref: str | None, config: Path | None, watcher: TransferObserver, *, look_up: bool = True, described: bool = False
) -> Model:
    """Facts of `ref`: from `config` (a config.json or its directory), else its directory, the hub's cache, the
    catalogue or the hub. `look_up` False: the network is not asked. `described`: a description that no id can be
    ("Qwen3-14B AWQ", "Qwen3-8B (merged)") is looked up in the catalogue, and what it was taken for is assumed.

    UsageError: nothing named, or neither a directory nor an id. ModelError: not there, not allowed, not readable.
    """
    if config is not None:
        return _from_path(ref or str(config), config)
    if not ref:
        raise UsageError(
            msg("the command names no model"), hint=msg("Name it after vllm serve, or give --model-config DIR.")
        )
    ref = id_of_page(ref) or ref
    path = path_named(ref)
    if path is not None and (path.exists() or ref.startswith((".", "/", "~"))):
        return _from_path(str(path), path)
    if path is None or not is_model_id(ref):
        known = _of_description(ref) if described else None
        if known is not None:
            return known
        raise UsageError(
            msg("{ref!r} is neither a directory nor a model id", ref=ref),
            hint=msg("Name a directory with a config.json, or an id like Qwen/Qwen2.5-7B-Instruct."),
        )
    return _from_hub(ref, watcher, look_up=look_up)


def _of_description(ref: str) -> Model | None:
    try:
        found = catalogue.find_model(ref)
    except ModelError:
        return None
    facts = found.facts()
    taken = f"the model {found.id}, as {ref!r} is read"
    return Model(ref, replace(facts, assumed=(*facts.assumed, taken)), "auto_map" in found.config)


def require_known(model: Model) -> Model:
    """The model, if a plan can be made of it. ModelError naming the architecture and the nearest known one."""
    if model.known or model.own_code:
        return model
    from difflib import get_close_matches

    from trimtab.facts.architectures.registry import known_architectures

    name = model.facts.architecture
    near = get_close_matches(name, known_architectures(), 1, 0.8)
    close = msg("; the nearest known one is {near}", near=near[0]) if near else ""
    raise ModelError(
        msg("{ref}: the architecture {name!r} is not known{close}", ref=model.ref, name=name, close=close),
        hint=msg(
            "Check `architectures` in its config.json. If your vLLM knows it, start it without a plan: "
            "trimtab up -- vllm serve {ref}",
            ref=model.ref,
        ),
    )


def _from_hub(ref: str, watcher: TransferObserver, *, look_up: bool) -> Model:
    hub = hub_from_environment()
    snapshot = CachedRepo(hub.cache, ref).snapshot("main", whole=False)
    if snapshot is not None:
        return _from_path(ref, snapshot)
    try:
        found = catalogue.find_model(ref)
    except ModelError:
        if not look_up:
            raise
    else:
        return Model(ref, found.facts(), "auto_map" in found.config)
    from trimtab.facts.probe.hub import fetch_config

    try:
        return _from_path(ref, fetch_config(ref, hub, watcher))
    except (ModelError, HostError, UpstreamError) as error:
        raise type(error)(error.message, hint=_without_hub(ref, error.hint)) from error


def _without_hub(ref: str, hint: Message) -> Message:
    """The hub's own next step, the catalogue's names that a misspelt id may mean, and how to do without both."""
    near = catalogue.nearest_ids(ref)
    if near:
        hint = msg("{hint}\n  -> Known without the hub, and alike: {names}", hint=hint, names=", ".join(near))
    return msg(
        "{hint}\n  -> Without the hub, plan and budget reckon from its config.json: --model-config DIR", hint=hint
    )


def _from_path(ref: str, path: Path) -> Model:
    from trimtab.facts.probe.model_dir import (
        ModelFiles,
        only_gguf,
        read_gguf_file,
        read_headers,
        read_json,
        read_model_dir,
    )  # fmt: skip

    path = only_gguf(path) or path
    if path.suffix == ".gguf" and path.is_file():
        from trimtab.facts.gguf_model import read_gguf_model

        return Model(ref, read_gguf_model(read_gguf_file(path)), False)
    if path.is_file():
        config = read_json(path, msg("Name a model's config.json, or the directory that holds it."))
        files = ModelFiles(path.parent, config, None, read_headers(path.parent))
    else:
        files = read_model_dir(path)
    facts = read_model(files.config, tensors=files.tensors, generation_config=files.generation_config)
    facts = replace(facts, chat_template=files.chat_template)
    return Model(ref, facts, "auto_map" in files.config)
