"""YAML with positions, by ruamel.yaml: nodes, mappings with their merge keys, and scalars as texts of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

import msgspec
from ruamel.yaml import YAML
from ruamel.yaml.composer import MaxDepthExceededError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from trimtab.engine.reading import yamlscalar
from trimtab.engine.source import Item, Layer, Listing, Problem, Source, Span, Word
from trimtab.messages import msg

__all__ = ["MappingNode", "Node", "ScalarNode", "SequenceNode", "Yaml", "parse"]
DEEPEST_MERGE = 20
DEEPEST = 100
"""Levels of nesting; no real file comes near, and reading takes a stack frame or more for each."""


class Yaml(msgspec.Struct, frozen=True):
    """A parsed YAML text; `offsets` turns ruamel's character positions into bytes of `layer`."""

    layer: Layer
    documents: tuple[Node, ...]
    offsets: Sequence[int]
    merged: dict[int, dict[str, Node]] = msgspec.field(default_factory=dict)

    def span(self, node: Node) -> Span:
        """The node in the layer; of a block scalar or collection without the white space after it."""
        start, end = self.offsets[node.start_mark.index], self.offsets[min(node.end_mark.index, len(self.offsets) - 1)]
        text = self.layer.data[start:end]
        return Span(start, start + len(text.rstrip()) if text.strip() else end)

    def scalar(self, node: ScalarNode) -> Layer:
        """The scalar's value as a text of its own."""
        return yamlscalar.layer(node.value, node.style, self.layer, self.span(node))

    def entries(self, node: Node | None) -> dict[str, Node]:
        """A mapping's values by key, with those that merge keys (`<<`) bring; empty for any other node."""
        return dict(self._entries(node, 0))

    def _entries(self, node: Node | None, depth: int) -> dict[str, Node]:
        """Worked out once for each mapping: aliases can bring one in any number of times, and into itself."""
        if not isinstance(node, MappingNode) or depth > DEEPEST_MERGE:
            return {}
        known = self.merged.get(id(node))
        if known is not None:
            return known
        found = self.merged[id(node)] = {}
        for key, value in node.value:
            if isinstance(key, ScalarNode) and key.value == "<<":
                sources = value.value if isinstance(value, SequenceNode) else [value]
                for source in reversed(sources):
                    found |= self._entries(source, depth + 1)
        found |= {key.value: value for key, value in node.value if isinstance(key, ScalarNode) and key.value != "<<"}
        return found

    def words(self, node: Node | None) -> list[Word]:
        """A sequence's scalars as words, each knowing its place in the list."""
        if not isinstance(node, SequenceNode):
            return []
        listing = self._listing(node)
        return [self.word(n, Item(listing, i)) for i, n in enumerate(node.value) if isinstance(n, ScalarNode)]

    def word(self, node: ScalarNode, item: Item | None = None) -> Word:
        """A scalar as one word."""
        layer = self.scalar(node)
        text = layer.data.decode("utf-8", "surrogateescape")
        sizes = accumulate((len(c.encode("utf-8", "surrogateescape")) for c in text), initial=0)
        return Word(text, list(sizes), Span(0, len(layer.data)), layer, item=item)

    def _listing(self, node: SequenceNode) -> Listing:
        spans = tuple(self.span(n) for n in node.value)
        flow = bool(node.flow_style)
        if flow or not spans:
            return Listing(self.layer, spans, ", ", lambda t: yamlscalar.quote(t, flow=True), flow=True)
        line = self.layer.data.rfind(b"\n", 0, spans[-1].start) + 1
        lead = re.sub(r"[^\s-]", " ", self.layer.data[line : spans[-1].start].decode("utf-8", "replace"))
        newline = "\r\n" if self.layer.data[line - 2 : line] == b"\r\n" else "\n"
        return Listing(self.layer, spans, newline + lead, yamlscalar.quote)


def _loader() -> YAML:
    loader = YAML(typ="safe", pure=True)
    loader.composer.warn_double_anchors = False
    loader.max_depth = DEEPEST
    return loader


def parse(layer: Layer, source: Source) -> Yaml | Problem:
    """The YAML documents in a text, or why it is not YAML, with the place."""
    text = layer.data.decode("utf-8", "surrogateescape")
    offsets: Sequence[int] = range(len(text) + 1)
    if not layer.data.isascii():
        offsets = list(accumulate((len(c.encode("utf-8", "surrogateescape")) for c in text), initial=0))
    try:
        documents = tuple(n for n in _loader().compose_all(text) if n is not None)
    except MaxDepthExceededError as e:
        at = offsets[min(e.problem_mark.index, len(text))]
        what = msg("This YAML is nested deeper than {most} levels.", most=DEEPEST)
        return source.problem(what, layer.root_span(Span(at, at)))
    except MarkedYAMLError as e:
        template = layer.data.find(b"{{")
        if template >= 0:
            what = msg("This is a template, not YAML: render it first (helm template).")
            return source.problem(what, layer.root_span(Span(template, template + 2)))
        mark = e.problem_mark or e.context_mark
        at = offsets[min(mark.index, len(text))] if mark else 0
        why = " ".join(str(part) for part in (e.context, e.problem) if part)
        return source.problem(msg("This is not valid YAML: {why}.", why=why), layer.root_span(Span(at, at)))
    except (YAMLError, ValueError, OverflowError) as e:
        at = offsets[min(getattr(e, "position", 0), len(text))]
        return source.problem(msg("This is not valid YAML: {why}.", why=str(e)[:200]), layer.root_span(Span(at, at)))
    return Yaml(layer, documents, offsets)
