"""Launches in docker compose files: services with their command, entry point, environment, devices and memory."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from trimtab.engine.command import Container, EnvUse, Form, Span, Value
from trimtab.engine.quantities import counted
from trimtab.engine.reading import shell
from trimtab.engine.reading.containers import Box, expanded
from trimtab.engine.reading.shellwords import nested
from trimtab.engine.reading.yaml import Node, ScalarNode, SequenceNode, Yaml
from trimtab.engine.source import Layer, Word

# Compose file reference, "Interpolation": $$ is a dollar sign; ${X:-y} and ${X-y} give a default.
VARIABLE = re.compile(r"\$\$|\$\{([A-Za-z_]\w*)(?:(:?[-?+])([^{}]*))?\}|\$([A-Za-z_]\w*)")


def read_service(service: Node, yaml: Yaml, state: shell.State) -> bool:
    """Take the launch that a service is; False where it is none."""
    if not state.launches.words:
        return False
    entries = yaml.entries(service)
    image = entries.get("image")
    word = _interpolated(yaml.word(image)) if isinstance(image, ScalarNode) else None
    env = environment(entries.get("environment"), yaml)
    entry = argv(entries.get("entrypoint"), yaml, state)
    box = Box(
        form=Form.COMPOSE,
        span=yaml.layer.root_span(yaml.span(service)),
        facts=_facts(entries, word, yaml),
        entry=entry or None,
        args=argv(entries.get("command"), yaml, state),
        env=env,
        anchor=word,
    )
    return shell.read_box(box, state)


def argv(node: Node | None, yaml: Yaml, state: shell.State) -> list[Word]:
    """`command` or `entrypoint`: a list as it is; a string split into words, as compose does it, without a shell."""
    if isinstance(node, SequenceNode):
        return [_interpolated(word) for word in yaml.words(node)]
    if not isinstance(node, ScalarNode) or not node.value.strip():
        return []
    return shell.split_words(interpolated_layer(yaml.word(node)), state)


def interpolated_layer(word: Word) -> Layer:
    """A string after interpolation as a text of its own."""
    return replace(nested(_interpolated(word)), encode=lambda text, span: text.replace("$", "$$"))


def _interpolated(word: Word) -> Word:
    return expanded(word, VARIABLE, _variable)


def _variable(found: re.Match[str]) -> str | None:
    if found.group() == "$$":
        return "$"
    if found.group(2) in (":-", "-"):
        return found.group(3)
    return "" if found.group(2) in (":+", "+") else None


def environment(node: Node | None, yaml: Yaml) -> dict[str, EnvUse]:
    """`environment` as a mapping or as a list of NAME=value."""
    uses: dict[str, EnvUse] = {}
    for word in yaml.words(node):
        name, equals, value = (whole := _interpolated(word)).text.partition("=")
        span = whole.source_span()
        uses[name] = EnvUse(name, value if equals else None, span, span, not whole.known)
    for name, value_node in yaml.entries(node).items():
        if not isinstance(value_node, ScalarNode):
            continue
        word = _interpolated(yaml.word(value_node))
        span = word.source_span()
        plain_null = value_node.style is None and value_node.value in ("", "~", "null")
        uses[name] = EnvUse(name, None if plain_null else word.text, span, span, not word.known)
    return uses


def value_of(node: Node | None, yaml: Yaml) -> Value | None:
    """A scalar as a Value."""
    if not isinstance(node, ScalarNode):
        return None
    word = _interpolated(yaml.word(node))
    return Value(word.text, word.source_span(), not word.known)


def _facts(entries: Mapping[str, Node], image: Word | None, yaml: Yaml) -> Container:
    deploy = yaml.entries(entries.get("deploy"))
    reservations = yaml.entries(yaml.entries(deploy.get("resources")).get("reservations"))
    devices = reservations.get("devices")
    device = yaml.entries(devices.value[0]) if isinstance(devices, SequenceNode) and devices.value else {}
    count = value_of(device.get("count"), yaml)
    ids = tuple(w.text for w in yaml.words(device.get("device_ids")))
    gpus = value_of(entries.get("gpus"), yaml) or count
    return Container(
        image=Value(image.text, image.source_span(), not image.known) if image else None,
        gpus=gpus or (value_of(device.get("driver"), yaml) if device else None),
        device_ids=ids,
        gpu_count=len(ids) or (counted(count.text) if count else None),
        shm_size=value_of(entries.get("shm_size"), yaml),
        ipc=value_of(entries.get("ipc"), yaml),
        runtime=value_of(entries.get("runtime"), yaml),
        network=value_of(entries.get("network_mode"), yaml),
        ports=tuple(w.text for w in yaml.words(entries.get("ports"))),
        volumes=tuple(w.text for w in yaml.words(entries.get("volumes"))),
        options_span=Span(*_bounds(yaml, entries)) if entries else None,
    )


def _bounds(yaml: Yaml, entries: Mapping[str, Node]) -> tuple[int, int]:
    spans = [yaml.layer.root_span(yaml.span(node)) for node in entries.values()]
    return min(s.start for s in spans), max(s.end for s in spans)
