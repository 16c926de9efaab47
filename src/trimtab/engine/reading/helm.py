"""Launches in values of the production stack's Helm chart: a `modelSpec` entry, as its deployment template reads it.

Source: helm/templates/deployment-vllm-multi.yaml of vllm-stack 0.1.12.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from msgspec.structs import replace

from trimtab.engine.command import Container, FlagUse, Form, LaunchCommand, Value
from trimtab.engine.quantities import counted
from trimtab.engine.reading import arguments, config, kubernetes, shell
from trimtab.engine.reading.compose import value_of
from trimtab.engine.reading.yaml import MappingNode, Node, ScalarNode, Yaml

KEYS = {
    "enablePrefixCaching", "enableChunkedPrefill", "maxModelLen", "dtype", "tensorParallelSize", "maxNumSeqs",
    "gpuMemoryUtilization", "maxLoras", "runner", "convert",
}  # fmt: skip
"""Of `vllmConfig`: each becomes the flag of that name."""


def read_model(node: MappingNode, yaml: Yaml, state: shell.State) -> bool:
    """Take the launch that a `modelSpec` entry describes; False where it names no model or is switched off."""
    entries = yaml.entries(node)
    url = entries.get("modelURL")
    if not isinstance(url, ScalarNode) or not url.value or _text(entries.get("enabled")) == "false":
        return False
    span = yaml.layer.root_span(yaml.span(node))
    settings = entries.get("vllmConfig")
    extra = kubernetes.arguments_of(yaml.entries(settings).get("extraArgs"), yaml)
    if shell.refused(len(extra) + len(entries), span, state):
        return False
    more, strays = arguments.pair(extra, state.arity)
    flags = (*_flags(settings, yaml), *more)
    model = yaml.word(url)
    words = (model, *(word for flag in flags for word in flag.words))
    env = MappingProxyType(kubernetes.environment(entries.get("env"), yaml))
    loose = tuple(Value(w.text, w.source_span(), not w.known) for w in strays)
    state.commands.append(
        LaunchCommand(
            Form.KUBERNETES, state.source, span, Value(model.text, model.source_span()), flags, env,
            _container(entries, yaml), loose, words=words,
        )
    )  # fmt: skip
    return True


def _flags(settings: Node | None, yaml: Yaml) -> list[FlagUse]:
    if not isinstance(settings, MappingNode) or not settings.value:
        return []
    found = []
    for flag in config.flags_of(settings, yaml):
        if flag.spelling in KEYS:
            found.append(replace(flag, name=re.sub(r"([A-Z])", r"-\1", flag.spelling).lower()))
    return found


def _container(entries: Mapping[str, Node], yaml: Yaml) -> Container:
    repository, tag = value_of(entries.get("repository"), yaml), value_of(entries.get("tag"), yaml)
    gpus = value_of(entries.get("requestGPU"), yaml)
    named = f"{repository.text}:{tag.text}" if repository and tag else None
    return Container(
        image=Value(named, repository.span) if named and repository else repository,
        gpus=gpus,
        gpu_count=counted(gpus.text) if gpus else None,
        shm_size=value_of(entries.get("shmSize"), yaml),
        shm_mount=value_of(yaml.entries(entries.get("vllmConfig")).get("tensorParallelSize"), yaml),
    )


def _text(node: Node | None) -> str:
    return node.value.lower() if isinstance(node, ScalarNode) else ""
