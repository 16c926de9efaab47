"""YAML files of every kind: compose, Kubernetes, vLLM's own configuration, scripts in other files (CI, SkyPilot)."""

from __future__ import annotations

import re

from trimtab.engine.command import Arity, LaunchCommand, Source
from trimtab.engine.reading import arguments, compose, config, dispatch, helm, kubernetes, shell
from trimtab.engine.reading.yaml import MappingNode, Node, ScalarNode, SequenceNode, Yaml, parse
from trimtab.engine.source import Layer, Problem

DEEPEST = 6
"""Texts within texts (YAML in a string of YAML), as shell.DEEPEST."""
LAUNCH = re.compile(r"vllm\s+serve|vllm\.entrypoints|vllm-openai")


def read(source: Source, layer: Layer, arity: Arity | None = None) -> tuple[list[LaunchCommand], list[Problem]]:
    """Launches in a YAML text, in order, and why it could not be read."""
    yaml = parse(layer, source)
    if isinstance(yaml, Problem):
        return [], [yaml]
    state = shell.State(source, arity)
    for root in yaml.documents:
        if isinstance(root, MappingNode) and config.is_config(root):
            config.read_config(root, yaml, state)
        else:
            _walk(root, yaml, state)
    state.commands.sort(key=lambda c: c.span)
    return state.commands, state.problems


def _walk(root: Node, yaml: Yaml, state: shell.State) -> None:
    """Look into every node once, so that aliases cannot multiply the work."""
    seen: set[int] = set()
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, MappingNode):
            taken = _take(node, yaml, state)
            templates = _templates(node)
            stack += [v for k, v in reversed(node.value) if id(v) not in taken and k not in templates]
            seen |= taken
        elif isinstance(node, SequenceNode):
            stack += [] if _argv(node, yaml, state) else list(reversed(node.value))
        elif isinstance(node, ScalarNode) and LAUNCH.search(node.value):
            _script(node, yaml, state)


def _templates(node: MappingNode) -> list[Node]:
    """Keys of a compose file that start nothing themselves: what its services merge in (`x-base: &base`)."""
    keys = [key for key, _ in node.value if isinstance(key, ScalarNode)]
    return [key for key in keys if key.value.startswith("x-")] if any(k.value == "services" for k in keys) else []


def _take(node: MappingNode, yaml: Yaml, state: shell.State) -> set[int]:
    """Launches that this mapping itself declares; gives the nodes that are done with."""
    entries = yaml.entries(node)
    taken: set[int] = set()
    services = entries.get("services")
    if isinstance(services, MappingNode):
        nodes = {id(n): n for n in yaml.entries(services).values()}
        taken |= {i for i, n in nodes.items() if compose.read_service(n, yaml, state)}
    if "args" not in entries and "command" in entries and _is_vllm_image(entries.get("image")):
        # another tool's way to say it (Ansible's docker_container)
        taken |= {id(n) for n in entries.values()} if compose.read_service(node, yaml, state) else set()
    for name in ("containers", "initContainers"):
        for item in entries[name].value if isinstance(entries.get(name), SequenceNode) else []:
            if kubernetes.read_container(item, entries, yaml, state):
                taken.add(id(item))
    model = entries.get("model")
    is_predictor = {"modelFormat", "args"} <= set(yaml.entries(model))
    if model and is_predictor and kubernetes.read_container(model, entries, yaml, state, managed=True):
        taken.add(id(model))
    if "modelURL" in entries and helm.read_model(node, yaml, state):
        taken |= {id(n) for n in entries.values()}
    # The values of a Helm chart: image.command beside image.repository.
    if {"repository", "command"} <= set(entries) and kubernetes.read_container(node, {}, yaml, state):
        taken.add(id(entries["command"]))
    return taken


def _argv(node: SequenceNode, yaml: Yaml, state: shell.State) -> bool:
    """Take the launch that a bare list of words is (`["vllm", "serve", "org/m", "--port", "1"]`)."""
    words = yaml.words(node) if all(isinstance(n, ScalarNode) for n in node.value) else []
    start = arguments.find_start(words)
    if start is None or start.arguments == len(words):
        return False
    shell.run(words, {}, yaml.layer.root_span(yaml.span(node)), state)
    return True


def _is_vllm_image(node: Node | None) -> bool:
    return isinstance(node, ScalarNode) and "vllm" in node.value


def _script(node: ScalarNode, yaml: Yaml, state: shell.State) -> None:
    """A string of another format that holds launches: a script, or a guide in Markdown."""
    if yaml.layer.depth >= DEEPEST:
        return
    layer = yaml.scalar(node)
    commands, problems = dispatch.read_inside(layer, state.source, state.arity)
    state.commands += commands
    state.problems += problems if commands else []
