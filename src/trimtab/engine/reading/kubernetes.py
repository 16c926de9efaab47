"""Launches in Kubernetes objects: every list of containers, wherever it stands, and KServe's predictor models."""

from __future__ import annotations

import re
from collections.abc import Mapping

from trimtab.engine.command import Container, EnvUse, Form, Value
from trimtab.engine.quantities import counted
from trimtab.engine.reading import shell
from trimtab.engine.reading.compose import value_of
from trimtab.engine.reading.containers import Box, expanded
from trimtab.engine.reading.yaml import Node, ScalarNode, SequenceNode, Yaml
from trimtab.engine.source import Word

# Kubernetes API, Container.args: $(NAME) is replaced from the container's environment, $$(NAME) is not.
REFERENCE = re.compile(r"\$\$\(|\$\(([A-Za-z_][\w.-]*)\)")
GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi")


def read_container(node: Node, pod: Mapping[str, Node], yaml: Yaml, state: shell.State, managed: bool = False) -> bool:
    """Take the launch that a container is; `managed`: its entry point is KServe's own model server."""
    if not state.launches.words:
        return False
    entries = yaml.entries(node)
    env = environment(entries.get("env"), yaml)
    image = entries.get("image")
    words = {name: [_expanded(w, env) for w in _list(entries.get(name), yaml)] for name in ("command", "args")}
    box = Box(
        form=Form.KUBERNETES,
        span=yaml.layer.root_span(yaml.span(node)),
        facts=_facts(entries, pod, yaml),
        entry=words["command"] or None,
        args=words["args"],
        env=env,
        anchor=yaml.word(image) if isinstance(image, ScalarNode) else None,
        managed=managed,
    )
    return shell.read_box(box, state)


def arguments_of(node: Node | None, yaml: Yaml) -> list[Word]:
    """A list of arguments in which nothing is known of the container's variables."""
    return [_expanded(word, {}) for word in _list(node, yaml)]


def _list(node: Node | None, yaml: Yaml) -> list[Word]:
    return [yaml.word(node)] if isinstance(node, ScalarNode) and node.value else yaml.words(node)


def _expanded(word: Word, env: Mapping[str, EnvUse]) -> Word:
    def lookup(found: re.Match[str]) -> str | None:
        if not found.group(1):
            return "$("
        use = env.get(found.group(1))
        return None if use is None or use.unknown else use.value

    return expanded(word, REFERENCE, lookup)


def environment(node: Node | None, yaml: Yaml) -> dict[str, EnvUse]:
    """A container's `env`; a value that comes from elsewhere (`valueFrom`) is not known."""
    uses: dict[str, EnvUse] = {}
    for item in node.value if isinstance(node, SequenceNode) else []:
        entries = yaml.entries(item)
        name = entries.get("name")
        if not isinstance(name, ScalarNode):
            continue
        span = yaml.layer.root_span(yaml.span(item))
        value = entries.get("value")
        if isinstance(value, ScalarNode):
            word = _expanded(yaml.word(value), uses)
            uses[name.value] = EnvUse(name.value, word.text, span, word.source_span(), not word.known)
        else:
            uses[name.value] = EnvUse(name.value, None, span, None, True)
    return uses


def _facts(entries: Mapping[str, Node], pod: Mapping[str, Node], yaml: Yaml) -> Container:
    resources = yaml.entries(entries.get("resources"))
    limits = {**yaml.entries(resources.get("requests")), **yaml.entries(resources.get("limits"))}
    gpus = next((value_of(limits[name], yaml) for name in GPU_RESOURCES if name in limits), None)
    mounts = [yaml.entries(m) for m in _items(entries.get("volumeMounts"))]
    shm = next((m for m in mounts if _text(m.get("mountPath")) == "/dev/shm"), None)
    volume = _volume(_text(shm.get("name")) if shm else None, pod, yaml)
    host_ipc = _text(pod.get("hostIPC")) == "true"
    return Container(
        image=value_of(entries.get("image"), yaml),
        gpus=gpus,
        gpu_count=counted(gpus.text) if gpus else None,
        shm_size=value_of(yaml.entries(volume.get("emptyDir")).get("sizeLimit"), yaml),
        shm_mount=value_of(shm.get("mountPath"), yaml) if shm else None,
        ipc=Value("host", value.span) if host_ipc and (value := value_of(pod.get("hostIPC"), yaml)) else None,
        runtime=value_of(pod.get("runtimeClassName"), yaml),
        ports=tuple(_text(yaml.entries(p).get("containerPort")) or "" for p in _items(entries.get("ports"))),
        volumes=tuple(f"{_text(m.get('name'))}:{_text(m.get('mountPath'))}" for m in mounts),
        options_span=yaml.layer.root_span(yaml.span(resources_node))
        if (resources_node := entries.get("resources"))
        else None,
    )


def _volume(name: str | None, pod: Mapping[str, Node], yaml: Yaml) -> Mapping[str, Node]:
    volumes = [yaml.entries(v) for v in _items(pod.get("volumes"))]
    return next((v for v in volumes if name and _text(v.get("name")) == name), {})


def _items(node: Node | None) -> list[Node]:
    return list(node.value) if isinstance(node, SequenceNode) else []


def _text(node: Node | None) -> str | None:
    return node.value if isinstance(node, ScalarNode) else None
