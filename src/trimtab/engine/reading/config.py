"""vLLM's own configuration file (`--config FILE.yaml`): one mapping of flags to values."""

from __future__ import annotations

import json
import re

from trimtab.engine.command import FlagUse, Form, LaunchCommand, Origin, Span, Value
from trimtab.engine.reading import yamlscalar
from trimtab.engine.reading.arguments import canonical
from trimtab.engine.reading.limits import Allowance
from trimtab.engine.reading.shell import State, refused
from trimtab.engine.reading.yaml import MappingNode, Node, ScalarNode, SequenceNode, Yaml
from trimtab.engine.source import Item, Layer, Listing, Word

# Any of these at the top tells such a file from other YAML.
TELLING = {
    "model", "tensor-parallel-size", "max-model-len", "gpu-memory-utilization", "served-model-name", "max-num-seqs",
    "max-num-batched-tokens", "enable-prefix-caching", "kv-cache-dtype", "trust-remote-code", "pipeline-parallel-size",
    "enable-expert-parallel", "tool-call-parser", "reasoning-parser", "compilation-config", "speculative-config",
    "async-scheduling", "no-enable-prefix-caching", "enable-auto-tool-choice", "quantization", "enforce-eager",
    "data-parallel-size", "limit-mm-per-prompt", "uvicorn-log-level", "tokenizer-mode",
}  # fmt: skip
MOST_NODES = 10_000
# PyYAML's booleans (YAML 1.1), which is what vLLM loads the file with.
TRUE, FALSE = re.compile("true|yes|on", re.IGNORECASE), re.compile("false|no|off", re.IGNORECASE)


def is_config(root: Node) -> bool:
    """Whether a document is such a file: a mapping with at least one telling flag and no key of another format.

    A model beside nothing but flags tells as well.
    """
    if not isinstance(root, MappingNode):
        return False
    keys = {k.value.replace("_", "-") for k, _ in root.value if isinstance(k, ScalarNode)}
    foreign = keys & {
        "services",
        "kind",
        "apiVersion",
        "jobs",
        "steps",
        "spec",
        "stages",
        "tasks",
        "image",
        "hosts",
        "setup",
    }
    telling = keys & TELLING
    if foreign or not telling:
        return False
    return bool(telling - {"model", "quantization"}) or ("model" in telling and all(map(_is_flag, keys)))


def _is_flag(key: str) -> bool:
    """Whether some version of vLLM has a flag of this name."""
    from trimtab.engine.flags import arity

    return arity("--" + key.removeprefix("no-")) is not None


def read_config(root: MappingNode, yaml: Yaml, state: State) -> None:
    """Take the launch that the file describes."""
    if refused(2 * len(root.value), yaml.layer.root_span(yaml.span(root)), state):
        return
    flags = flags_of(root, yaml)
    named = [flag for flag in flags if flag.name == "model" and flag.value is not None]
    model = Value(named[-1].value or "", named[-1].value_span) if named else None
    words = tuple(word for flag in flags for word in flag.words)
    span = yaml.layer.root_span(yaml.span(root))
    state.commands.append(LaunchCommand(Form.CONFIG, state.source, span, model, tuple(flags), words=words))


def flags_of(root: MappingNode, yaml: Yaml) -> list[FlagUse]:
    """The flags that a mapping of names to values gives, each knowing its place."""
    spans = tuple(Span(yaml.span(k).start, max(yaml.span(k).end, yaml.span(v).end)) for k, v in root.value)
    listing = _listing(root, spans, yaml)
    return [
        _flag(key, value, Item(listing, i), yaml)
        for i, (key, value) in enumerate(root.value)
        if isinstance(key, ScalarNode)
    ]


def _listing(root: MappingNode, spans: tuple[Span, ...], yaml: Yaml) -> Listing:
    data = yaml.layer.data
    line = data.rfind(b"\n", 0, spans[-1].start) + 1
    newline = "\r\n" if b"\r\n" in data else "\n"
    flow = bool(root.flow_style)
    lead = ", " if flow else newline + " " * (spans[-1].start - line)
    return Listing(yaml.layer, spans, lead, lambda t: _written(t, flow), flow, pairs=True)


def _written(text: str, flow: bool) -> str:
    number_or_json = re.fullmatch(r"-?\d+(\.\d+)?", text) or _is_json(text)
    return text if number_or_json else yamlscalar.quote(text, flow=flow)


def _is_json(text: str) -> bool:
    if text[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _flag(key: ScalarNode, value: Node, item: Item, yaml: Yaml) -> FlagUse:
    name, path, negated = canonical(f"--{key.value}")
    key_word = yaml.word(key, item)
    key_span, value_span = key_word.source_span(), yaml.layer.root_span(yaml.span(value))
    values, words = _values(value, item, yaml)
    boolean = value.value if isinstance(value, ScalarNode) and value.style is None else ""
    if TRUE.fullmatch(boolean) or FALSE.fullmatch(boolean):
        values = ()
        negated = negated or bool(FALSE.fullmatch(boolean))
    return FlagUse(
        name=name,
        spelling=key.value,
        value=" ".join(values) if values else None,
        span=Span(key_span.start, max(key_span.end, value_span.end)),
        spelling_span=key_span,
        value_span=value_span,
        negated=negated,
        origin=Origin.CONFIG_FILE,
        path=path,
        values=values,
        words=(key_word, *words),
    )


def _values(value: Node, item: Item, yaml: Yaml) -> tuple[tuple[str, ...], list[Word]]:
    if isinstance(value, ScalarNode):
        return (value.value,), [yaml.word(value, item)]
    if isinstance(value, SequenceNode) and value.value and all(isinstance(n, ScalarNode) for n in value.value):
        return tuple(n.value for n in value.value), [_whole(value, item, yaml)]
    return (json.dumps(_plain(value, yaml, 0, Allowance(MOST_NODES))),), [_whole(value, item, yaml)]


def _whole(value: Node, item: Item, yaml: Yaml) -> Word:
    span = yaml.span(value)
    layer = Layer(b"", [span.start], yaml.layer, span, lambda text, at: None, lambda text: _written(text, True))
    return Word("", [0], Span(0, 0), layer, item=item)


def _plain(node: Node, yaml: Yaml, depth: int, allowance: Allowance) -> object:
    """A node as JSON has it; null for what aliases multiply beyond the allowance."""
    if depth > 20 or not allowance.take(1):
        return None
    if isinstance(node, ScalarNode):
        return _scalar(node)
    if isinstance(node, SequenceNode):
        return [_plain(n, yaml, depth + 1, allowance) for n in node.value]
    return {key: _plain(value, yaml, depth + 1, allowance) for key, value in yaml.entries(node).items()}


def _scalar(node: ScalarNode) -> object:
    text = str(node.value)
    if node.style is not None:
        return text
    if TRUE.fullmatch(text) or FALSE.fullmatch(text):
        return bool(TRUE.fullmatch(text))
    if text in ("", "~", "null"):
        return None
    if re.fullmatch(r"[-+]?\d+", text) and len(text) < 100:
        return int(text)
    return float(text) if re.fullmatch(r"[-+]?\d+\.\d*(?:[eE][-+]?\d+)?", text) else text
