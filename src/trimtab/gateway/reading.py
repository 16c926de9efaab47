"""A configuration file's text -> Config, with every fault at its line; looks at nothing but the text."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from trimtab.engine.reading.yaml import MappingNode, Node, ScalarNode, SequenceNode, parse
from trimtab.engine.source import Layer, Problem, Source
from trimtab.gateway.config import Config
from trimtab.gateway.findings import Finding, Place, Reading
from trimtab.messages import Message, msg


def read(data: bytes, name: str) -> Reading:
    """The configuration in a YAML text (JSON is YAML). An empty text holds the defaults."""
    source = Source(data, name)
    found = parse(Layer.root(data), source)
    if isinstance(found, Problem):
        hint = msg("Correct the text there; indentation and quotes are the usual causes.")
        return Reading(None, (Finding(found.message, hint, found.line, found.column),), {})
    reader = _Reader()
    documents = found.documents
    if len(documents) > 1:
        reader.fault(documents[1], msg("a second document begins here"), msg("Keep one: remove the line with ---."))
    value = reader.struct(documents[0], Config, ()) if documents else {}
    if reader.findings:
        return Reading(None, tuple(reader.findings), reader.places)
    return Reading(msgspec.convert(value, Config), (), reader.places)


class _Reader:
    """Walks the nodes beside the records' types."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.places: dict[Place, tuple[int, int]] = {}

    def fault(self, node: Node, message: Message, hint: Message) -> None:
        mark = node.start_mark
        self.findings.append(Finding(message, hint, mark.line + 1, mark.column + 1))

    def struct(self, node: Node, record: type[msgspec.Struct], place: Place) -> dict[str, Any]:
        """A mapping whose keys are the fields of `record`."""
        hints = get_type_hints(record, include_extras=True)
        found: dict[str, Any] = {}
        for key, name, child in self._pairs(node, place):
            if name not in hints:
                near = get_close_matches(name, hints, n=1, cutoff=0.5)
                known = ", ".join(hints)
                hint = msg("Did you mean {near}?", near=near[0]) if near else msg("Known here: {known}.", known=known)
                self.fault(key, msg("there is no field {name} in {where}", name=repr(name), where=_where(place)), hint)
            else:
                found[name] = self._value(child, hints[name], (*place, name))
        for field in msgspec.structs.fields(record):
            if field.required and field.name not in found:
                message = msg("{where} has no {name}", where=_where(place), name=field.name)
                self.fault(node, message, msg("Add it: every entry there needs one."))
        return found

    def _pairs(self, node: Node, place: Place) -> Iterator[tuple[Node, str, Node]]:
        self._stands(node, place)
        if isinstance(node, ScalarNode) and place[-1:] == ("key",) and not _is_null(node):
            message = msg("{where} names no place of a key", where=_where(place))  # it may be the key: not told
            hint = msg("Never the key itself. Name its place: key: {{env: NAME}}, {{file: PATH}} or {{stored: NAME}}.")
            self.fault(node, message, hint)
            return
        if not isinstance(node, MappingNode):
            message = msg("{where} holds {what}, not fields with values", where=_where(place), what=_what(node))
            self.fault(node, message, msg("Write one field: value on a line each, indented alike."))
            return
        seen: set[str] = set()
        own = [(key, child) for key, child in node.value if key.value != "<<"]
        merged = [pair for key, child in node.value if key.value == "<<" for pair in _merged(child)]
        for key, child in own + merged:
            name = str(key.value)
            if name in seen and (key, child) in merged:
                continue
            if name in seen:
                hint = msg("Keep one of the two.")
                self.fault(key, msg("{name} stands twice in {where}", name=repr(name), where=_where(place)), hint)
            else:
                seen.add(name)
                self._stands(key, (*place, name))
                yield key, name, child

    def _value(self, node: Node, hint: Any, place: Place) -> Any:
        kind, args = _bare(hint)
        if kind is dict and _is_record(args[1]):
            return {name: self.struct(child, args[1], (*place, name)) for _, name, child in self._pairs(node, place)}
        if kind is tuple and _is_record(args[0]) and isinstance(node, SequenceNode):
            return [self.struct(child, args[0], (*place, at)) for at, child in enumerate(node.value)]
        if _is_record(kind) and not _is_null(node):
            return self.struct(node, kind, place)
        for at, child in enumerate(node.value if isinstance(node, SequenceNode) else ()):
            self._stands(child, (*place, at))
        value = _plain(node)
        try:
            msgspec.convert(value, hint)
        except msgspec.ValidationError as error:
            reason = str(error).partition(" - at")[0].replace("`array`", "a list")
            options = get_args(kind) if get_origin(kind) is Literal else ()
            self.fault(node, msg("{where}: {reason}", where=_where(place), reason=reason), _advice(value, options))
        return value

    def _stands(self, node: Node, place: Place) -> None:
        mark = node.start_mark
        self.places.setdefault(place, (mark.line + 1, mark.column + 1))


def _advice(value: object, options: tuple[str, ...]) -> Message:
    if not options:
        return msg("The reference in docs/gateway.md says what it takes.")
    near = get_close_matches(str(value), options, n=1)
    return msg("Did you mean {near}?", near=near[0]) if near else msg("It takes: {known}.", known=", ".join(options))


def _bare(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """The type without Annotated and None, and what is in its brackets."""
    while True:
        if get_origin(hint) is Annotated:
            hint = get_args(hint)[0]
        elif get_origin(hint) in (Union, UnionType):
            hint = next(arg for arg in get_args(hint) if arg is not type(None))
        else:
            break
    return (hint if get_origin(hint) in (None, Literal) else get_origin(hint)), get_args(hint)


def _merged(node: Node) -> list[tuple[Node, Node]]:
    """What a merge key brings, one level deep."""
    sources = node.value if isinstance(node, SequenceNode) else [node]
    return [pair for source in sources if isinstance(source, MappingNode) for pair in source.value]


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and str(node.tag).endswith(":null")


def _plain(node: Node) -> Any:
    """A scalar's value as YAML 1.2 has it; of lists and mappings those of their scalars, one level deep."""
    if isinstance(node, MappingNode):
        return {str(key.value): value.value for key, value in node.value}
    if isinstance(node, SequenceNode):
        return [_plain(child) if isinstance(child, ScalarNode) else {} for child in node.value]
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).constructor.construct_object(node)


def _where(place: Place) -> str:
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "the file"


def _what(node: Node) -> Message:
    if isinstance(node, SequenceNode):
        return msg("a list")
    return msg("nothing") if _is_null(node) else msg("the value {value}", value=repr(str(node.value)[:40]))
