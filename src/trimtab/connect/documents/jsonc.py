"""JSON with comments, changed in its text: spans are replaced, put in or cut out, and nothing else moves."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

import msgspec

from trimtab.connect.documents import ABSENT, InTheWay, Item, Step, Steps, Unreadable, shown

_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)
DEEPEST = 100


class Node(msgspec.Struct):
    """A value's span, and what it holds: `members` of an object have keys, those of an array have none."""

    start: int
    end: int
    value: Any
    members: list[tuple[str | None, int, Node]] | None = None  # key, where the member begins, value


class Document:
    """A JSON file whose root is an object or a list; an empty file becomes the one that the first path needs."""

    def __init__(self, text: str) -> None:
        self._made = _BLANK.fullmatch(text) is not None
        self._text = f"{text.rstrip()}\n{{}}\n".lstrip() if self._made else text
        self._root = _parsed(self._text)

    def get(self, path: Steps) -> object:
        found = self._walk(path)
        return found[-1].value if len(found) == len(path) + 1 else ABSENT

    def set(self, path: Steps, value: object) -> None:
        found = self._walk(path)
        rest = path[len(found) - 1 :]
        if not rest:
            last = path[-1]
            new = {**found[-1].value, **value} if isinstance(last, Item) and isinstance(value, dict) else value
            if found[-1].value != new or type(found[-1].value) is not type(new):
                self._replace(found[-1], new)
            return
        holder, first = found[-1], rest[0]
        if holder.members is None or isinstance(holder.value, list) != isinstance(first, Item):
            if holder.value is not None and not (self._made and len(found) == 1):
                raise InTheWay(shown(path[: len(found) - 1]))
            self._replace(holder, _nested(rest, value))
            self._made = False
            return
        self._insert(holder, first if isinstance(first, str) else None, _nested(rest, value, inside=True))

    def remove(self, path: Steps) -> None:
        found = self._walk(path)
        if len(found) != len(path) + 1:
            return
        depth = len(path)
        while depth > 1 and _alone(found[depth - 1], path[depth - 1], path[depth - 2]):
            depth -= 1
        self._cut(found[depth - 1], found[depth])

    def text(self) -> str:
        return self._text

    def _walk(self, path: Steps) -> list[Node]:
        """The root and the node at each step, as far as there are any."""
        found = [self._root]
        for step in path:
            below = _below(found[-1], step)
            if below is None:
                break
            found.append(below)
        return found

    def _become(self, text: str) -> None:
        self._text, self._root = text, _parsed(text)

    def _replace(self, node: Node, value: object) -> None:
        indent = _line_indent(self._text, node.start)
        self._become(self._text[: node.start] + self._dumped(value, indent) + self._text[node.end :])

    def _dumped(self, value: object, indent: str) -> str:
        return json.dumps(value, indent=self._unit(), ensure_ascii=False).replace("\n", f"\n{indent}")

    def _unit(self) -> str:
        found = _INDENT.search(self._text)
        return found[1] if found else "  "

    def _insert(self, holder: Node, key: str | None, value: object) -> None:
        text, members = self._text, holder.members or []
        name = f"{json.dumps(key, ensure_ascii=False)}: " if key is not None else ""
        if members and "\n" not in text[holder.start : holder.end]:
            last = members[-1][2].end
            shown_value = json.dumps(value, ensure_ascii=False)
            self._become(f"{text[:last]}, {name}{shown_value}{text[last:]}")
            return
        outer = _line_indent(text, holder.start)
        indent = _line_indent(text, members[-1][1]) if members else outer + self._unit()
        new = f"\n{indent}{name}{self._dumped(value, indent)}"
        close = holder.end - 1
        inner = text[holder.start + 1 : close]
        kept = holder.start + 1 + len(inner.rstrip())
        if members:
            last = members[-1][2].end
            comma = "" if _comma_after(text, last) is not None else ","
            head = text[:last] + comma + text[last:kept]
        else:
            head = text[:kept]
        tail = text[kept:close] if "\n" in text[kept:close] else f"\n{outer}"
        self._become(head + new + tail + text[close:])

    def _cut(self, holder: Node, node: Node) -> None:
        text, members = self._text, holder.members or []
        at = next(i for i, (_, _, value) in enumerate(members) if value is node)
        start, end = members[at][1], node.end
        comma = _comma_after(text, end)
        if comma is not None:
            end = comma + 1
        line = text.rfind("\n", 0, start)
        if line >= 0 and not text[line:start].strip():
            start = text[:start].rstrip(" \t").rfind("\n")
        head, tail = text[:start], text[end:]
        if comma is None and at > 0:  # the member before is the last one now
            before = _comma_after(text, members[at - 1][2].end)
            if before is not None:
                between = text[before + 1 : start]
                head = text[:before] + (between if between.strip() or "\n" in between else "")
        self._become(head + tail)


def _alone(holder: Node, step: Step, before: Step) -> bool:
    """Whether the container at `before` holds nothing but what is at `step`."""
    if isinstance(before, Item):
        return set(holder.value) <= {before.field, step}
    return len(holder.members or []) == 1


def _below(node: Node, step: Step) -> Node | None:
    members = node.members or []
    if isinstance(step, Item):
        entries = [value for key, _, value in members if key is None and isinstance(value.value, dict)]
        return next((e for e in entries if e.value.get(step.field) == step.value), None)
    return next((value for key, _, value in reversed(members) if key == step), None)


def _nested(path: Steps, value: object, *, inside: bool = False) -> object:
    """`value` below the containers that `path` needs; `inside`: without the outermost one, which is there."""
    for at in range(len(path) - 1, 0 if inside else -1, -1):
        step = path[at]
        value = [_entry(step, value)] if isinstance(step, Item) else {step: value}
    first = path[0]
    return _entry(first, value) if inside and isinstance(first, Item) else value


def _entry(step: Item, value: object) -> dict[str, object]:
    return {step.field: step.value, **(value if isinstance(value, dict) else {})}


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _comma_after(text: str, at: int) -> int | None:
    after = _skipped(text, at)
    return after if text[after : after + 1] == "," else None


def _skipped(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _parsed(text: str) -> Node:
    start = _skipped(text, 1 if text.startswith("\ufeff") else 0)
    if text[start : start + 1] not in ("{", "["):
        _refuse(text, start, "an object or a list was expected")
    root = _value(text, start, 0)
    end = _skipped(text, root.end)
    if end != len(text):
        _refuse(text, end, "something follows the end")
    return root


def _value(text: str, at: int, depth: int) -> Node:
    if depth > DEEPEST:
        _refuse(text, at, f"more than {DEEPEST} levels")
    opening = text[at : at + 1]
    if opening in ("{", "["):
        return _container(text, at, depth)
    found = _STRING.match(text, at) or _PLAIN.match(text, at)
    if found is None:
        _refuse(text, at, "a value was expected")
    try:
        return Node(at, found.end(), json.loads(found[0]))
    except ValueError:
        _refuse(text, at, "a string with a wrong escape")


def _container(text: str, start: int, depth: int) -> Node:
    is_object = text[start] == "{"
    close = "}" if is_object else "]"
    members: list[tuple[str | None, int, Node]] = []
    at = _skipped(text, start + 1)
    while text[at : at + 1] != close:
        begins, key = at, None
        if is_object:
            key, at = _key(text, at)
        value = _value(text, at, depth + 1)
        members.append((key, begins, value))
        at = _skipped(text, value.end)
        if text[at : at + 1] == ",":
            at = _skipped(text, at + 1)
        elif text[at : at + 1] != close:
            _refuse(text, at, f"a comma or {close} was expected")
    plain: Any = {key: node.value for key, _, node in members} if is_object else [node.value for _, _, node in members]
    return Node(start, at + 1, plain, members)


def _key(text: str, at: int) -> tuple[str, int]:
    found = _STRING.match(text, at)
    if found is None:
        _refuse(text, at, "a key in double quotes was expected")
    colon = _skipped(text, found.end())
    if text[colon : colon + 1] != ":":
        _refuse(text, colon, "a colon was expected")
    try:
        return json.loads(found[0]), _skipped(text, colon + 1)
    except ValueError:
        _refuse(text, at, "a string with a wrong escape")


def _refuse(text: str, at: int, reason: str) -> NoReturn:
    line = text.count("\n", 0, at) + 1
    raise Unreadable(f"line {line}, column {at - text.rfind(chr(10), 0, at)}: {reason}")
