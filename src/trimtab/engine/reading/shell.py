"""Launches in shell text, by tree-sitter-bash: commands, assignments and exports in their order; nothing is run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from trimtab.engine.command import Arity, Container, EnvUse, Form, LaunchCommand, Source
from trimtab.engine.reading import arguments, docker, grammar
from trimtab.engine.reading.containers import SHELLS, Box, entry_value, script_of, serves
from trimtab.engine.reading.limits import Allowance
from trimtab.engine.reading.shellwords import Variables, nested, word_of, words_of
from trimtab.engine.source import Layer, Problem, Span, Word, gap_start
from trimtab.messages import Message, msg

if TYPE_CHECKING:
    from tree_sitter import Node

CARRIERS = {
    "ssh", "tmux", "screen", "eval", "su", "xargs", "script", "watch", "parallel", "pdsh", "clush", "kubectl", "docker",
}  # fmt: skip
DEEPEST = 6
CONDITIONAL = {"if_statement", "case_statement", "while_statement", "for_statement", "list"}
MOST_PROBLEMS = 50
LAUNCH = re.compile(rb"vllm\s+serve|vllm\.entrypoints|vllm-openai")


class Place(msgspec.Struct, frozen=True):
    """Where a statement stands: whether it may be passed over, and what follows it."""

    conditional: bool = False
    siblings: Sequence[Node] = ()
    index: int = 0


class State(msgspec.Struct):
    """What the text has set so far."""

    source: Source
    arity: Arity | None
    form: Form | None = None
    scalars: dict[str, Word] = msgspec.field(default_factory=dict)
    arrays: dict[str, tuple[Word, ...]] = msgspec.field(default_factory=dict)
    exported: dict[str, EnvUse] = msgspec.field(default_factory=dict)
    commands: list[LaunchCommand] = msgspec.field(default_factory=list)
    problems: list[Problem] = msgspec.field(default_factory=list)
    container: Container | None = None
    depth: int = 0
    place: Place = msgspec.field(default_factory=Place)
    joined: set[tuple[Layer, int]] = msgspec.field(default_factory=set)
    growth: Allowance = msgspec.field(default_factory=Allowance)
    launches: Allowance = msgspec.field(default_factory=Allowance)

    @property
    def variables(self) -> Variables:
        return Variables(self.scalars, self.arrays, self.growth)

    def seed(self, env: Mapping[str, EnvUse]) -> None:
        """Begin with these variables set and exported."""
        for name, use in env.items():
            text = use.value or ""
            word = Word(
                text, [0] * (len(text) + 1), Span(0, 0), Layer.root(b""), use.value is not None and not use.unknown
            )
            self.scalars[name], self.exported[name] = word, use


def read(source: Source, layer: Layer, arity: Arity | None = None) -> tuple[list[LaunchCommand], list[Problem]]:
    """Launches in the shell text `layer`, in order, and what could not be read near them."""
    state = State(source, arity)
    read_layer(layer, state)
    return state.commands, state.problems


def read_layer(layer: Layer, state: State) -> None:
    """Read one text into `state`."""
    root = grammar.parse(grammar.masked(layer.data))
    found = len(state.commands)
    for node, place in _statements(root):
        state.place = place
        _HANDLERS[node.type](node, layer, state)
    _report_errors(root, layer, state, state.commands[found:])


def split_words(layer: Layer, state: State, variables: Variables | None = None) -> list[Word]:
    """The words of a text that no shell reads (a compose `command`): quotes count, line ends are blanks."""
    blank = re.sub(rb"[\r\n]", b" ", layer.data)
    root = grammar.parse(re.sub(rb"[;|&<>()`#]", b"x", blank))
    _report_errors(root, layer, state, None)
    words: list[Word] = []
    for node, _ in _statements(root):
        if node.type == "command":
            for child in _parts(node):
                part = child.named_children[0] if child.type == "command_name" else child
                words += words_of(part, layer, variables or Variables({}, {}))
        elif node.type == "variable_assignment":
            words += words_of(node, layer, variables or Variables({}, {}))
    return words


def _statements(root: Node) -> Iterator[tuple[Node, Place]]:
    """Each statement in order with its place; tree-sitter's own `parent` and `next_sibling` search from the start."""
    stack: list[tuple[Node, Place]] = [(root, Place())]
    while stack:
        node, place = stack.pop()
        if node.type in _HANDLERS:
            yield node, place
        if node.type not in _LEAVES:
            within = node.type != "function_definition" and (place.conditional or node.type in CONDITIONAL)
            children = node.named_children
            stack.extend((child, Place(within, children, i)) for i, child in reversed(list(enumerate(children))))


def _assignment(node: Node, layer: Layer, state: State, exported: bool = False) -> None:
    name_node, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name_node is None or name_node.type != "variable_name":
        return
    name = (name_node.text or b"").decode()
    if value is not None and value.type == "array":
        more = [w for child in value.named_children for w in words_of(child, layer, state.variables)]
        state.arrays[name] = (*_kept(name, node, layer, state), *more) if _is_appended(node) else tuple(more)
        return
    word = _assigned(node, value, layer, state)
    state.scalars[name] = word
    if exported or name in state.exported:
        state.exported[name] = _env(node, name, word, layer)


def _assigned(node: Node, value: Node | None, layer: Layer, state: State) -> Word:
    if value is None:
        return Word("", [node.end_byte], Span(node.end_byte, node.end_byte), layer)
    word = word_of(value, layer, state.variables)
    open_end = _is_appended(node) or state.place.conditional
    return Word(word.text, word.at, word.span, word.layer, False) if open_end else word


def _is_appended(assignment: Node) -> bool:
    return any(child.type == "+=" for child in assignment.children)


def _kept(name: str, assignment: Node, layer: Layer, state: State) -> tuple[Word, ...]:
    """The words of an array that is added to; with one that is not known where it may have been passed over."""
    before = state.arrays.get(name, ())
    if not state.place.conditional:
        return before
    size = len(name)
    return (*before, Word(f"${name}", [assignment.start_byte] * (size + 2), Span(0, 0), layer, False))


def _env(node: Node, name: str, word: Word, layer: Layer) -> EnvUse:
    span = layer.root_span(Span(node.start_byte, node.end_byte))
    return EnvUse(name, word.text, span, word.source_span(), not word.known)


def _declaration(node: Node, layer: Layer, state: State) -> None:
    exported = (node.children[0].type == "export") if node.children else False
    exported = exported or b" -x" in (node.text or b"")
    for child in node.named_children:
        if child.type == "variable_assignment":
            _assignment(child, layer, state, exported)
        elif child.type == "variable_name" and exported:
            name = (child.text or b"").decode()
            if name in state.scalars:
                state.exported[name] = _env(child, name, state.scalars[name], layer)


def _unset(node: Node, layer: Layer, state: State) -> None:
    for child in node.named_children:
        name = (child.text or b"").decode("utf-8", "replace")
        state.scalars.pop(name, None)
        state.arrays.pop(name, None)
        state.exported.pop(name, None)


def _loop(node: Node, layer: Layer, state: State) -> None:
    variable = node.child_by_field_name("variable")
    if variable is not None:
        name = (variable.text or b"").decode("utf-8", "replace")
        state.scalars[name] = Word(f"${name}", [variable.start_byte] * (len(name) + 2), Span(0, 0), layer, False)


def _command(node: Node, layer: Layer, state: State) -> None:
    env: dict[str, EnvUse] = dict(state.exported)
    words: list[Word] = []
    for child in _parts(node):
        if child.type == "variable_assignment":
            name_node = child.child_by_field_name("name")
            name = (name_node.text or b"").decode("utf-8", "replace") if name_node else ""
            env[name] = _env(child, name, _assigned(child, child.child_by_field_name("value"), layer, state), layer)
        elif child.type == "command_name":
            words += words_of(child.named_children[0], layer, state.variables) if child.named_children else []
        elif not child.type.endswith(("redirect", "comment")):
            words += words_of(child, layer, state.variables)
    if words and words[0].text.startswith("-") and (layer, node.start_byte) in state.joined:
        return
    if words and (arguments.find_start(words) or docker.read_run(words, env, Span(0, 0))):
        words += _cut_off(layer, state)
    if words:
        run(words, env, layer.root_span(Span(node.start_byte, node.end_byte)), state)


def _parts(node: Node) -> list[Node]:
    """A command's parts; the grammar takes a lone `==` for an operator, which to a command is a word."""
    return [child for child in node.children if child.is_named or child.type in ("==", "=~", "=")]


def _cut_off(layer: Layer, state: State) -> list[Word]:
    """Flags that follow on lines of their own: a comment or a missing backslash ended the command before them.

    They are read as meant, and reported, for a shell takes them for commands.
    """
    words: list[Word] = []
    for sibling in islice(state.place.siblings, state.place.index + 1, None):
        command = sibling
        while command.type in ("pipeline", "redirected_statement", "list") and command.named_children:
            command = command.named_children[0]
        if command.type == "command" and (command.text or b"").startswith(b"-"):
            parts = [c.named_children[0] if c.type == "command_name" else c for c in _parts(command)]
            more = [w for part in parts for w in words_of(part, layer, state.variables)]
            what = msg("The command ends before this line: a shell takes {word} for a command.", word=more[0].text)
            if len(state.problems) < MOST_PROBLEMS:
                state.problems.append(state.source.problem(what, more[0].source_span()))
            state.joined.add((layer, command.start_byte))
            words += more
        elif command.type != "comment":
            break
    return words


def run(words: list[Word], env: dict[str, EnvUse], span: Span, state: State) -> None:
    """Take the launch, if any, that a process with these words is."""
    start = arguments.find_start(words)
    box = docker.read_run(words, env, span) if start is None else None
    if start is not None:
        for word in words[: start.first]:
            env.update(_assignment_word(word))
        form = state.form or (Form.SERVE if start.subcommand == "serve" else Form.API_SERVER)
        _take(words, start, Box(form, span, state.container, env=env), state)
    elif box is not None:
        read_box(box, state)
    else:
        _scripts(words, state)


def _take(words: list[Word], start: arguments.Start, box: Box, state: State) -> None:
    program, rest = words[start.first : start.arguments], words[start.arguments :]
    if refused(len(words) + len(box.env), box.span, state):
        return
    state.commands.append(
        arguments.launch(
            rest, start.subcommand, box.form, state.source, box.span, box.env, box.facts, state.arity, program
        )
    )


def refused(words: int, span: Span, state: State) -> bool:
    """Whether a launch of so many words is more than is read, which is then told of."""
    why = state.launches.refusal(words)
    if why is not None and len(state.problems) < MOST_PROBLEMS and all(p.message != why for p in state.problems):
        state.problems.append(state.source.problem(why, span))
    return why is not None


def read_box(box: Box, state: State) -> bool:
    """Take the launch that a container is; False where it is none."""
    if box.facts is not None and box.entry:
        box.facts = replace(box.facts, entrypoint=entry_value(box.entry))
    words = [*(word for word in box.entry or [] if word.text), *box.args]  # --entrypoint "" leaves the arguments alone
    script = script_of(words)
    if script is not None:
        return _read_script(script, box, state)
    start = arguments.find_start(words)
    if start is not None:
        _take(words, start, box, state)
    elif not box.entry and serves(box):
        program = [box.anchor] if box.anchor else []
        start = arguments.Start(0, len(program), "kserve" if box.managed else "serve")
        _take([*program, *words], start, box, state)
    else:
        return False
    return True


def _read_script(script: Word, box: Box, state: State) -> bool:
    if state.depth >= DEEPEST:
        return False
    inner = State(state.source, state.arity, box.form, container=box.facts, depth=state.depth + 1)
    inner.growth, inner.launches = state.growth, state.launches
    inner.seed(box.env)
    layer = nested(script)
    if box.form is Form.COMPOSE:
        layer = replace(layer, encode=lambda text, span: text.replace("$", "$$"))
    read_layer(layer, inner)
    state.commands += inner.commands
    state.problems += inner.problems
    return bool(inner.commands)


def _heredoc(node: Node, layer: Layer, state: State) -> None:
    """A script or a file that the script writes or sends."""
    body = next((c for c in node.named_children if c.type == "heredoc_body"), None)
    if body is None or state.depth >= DEEPEST:
        return
    data = layer.data[body.start_byte : body.end_byte]
    if LAUNCH.search(data):
        from trimtab.engine.reading import dispatch

        span = Span(body.start_byte, body.end_byte)
        part = Layer(data, range(span.start, span.end + 1), layer, span)
        kind = dispatch.sniff(data)
        if kind == "shell":
            state.depth += 1
            read_layer(part, state)
            state.depth -= 1
        else:
            commands, problems = dispatch.read_as(kind, state.source, part, state.arity)
            state.commands += commands
            state.problems += problems


def _scripts(words: list[Word], state: State) -> None:
    names = {w.text.rpartition("/")[2] for w in words}
    if not names & (SHELLS | CARRIERS) or state.depth >= DEEPEST or not state.launches.words:
        return
    for word in words:
        if "vllm" in word.text and re.search(r"\s", word.text):
            state.depth += 1
            read_layer(nested(word), state)
            state.depth -= 1


def _assignment_word(word: Word) -> dict[str, EnvUse]:
    name, equals, value = word.text.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_]\w*", name):
        return {}
    return {name: EnvUse(name, value, word.source_span(), word.source_span(len(name) + 1), not word.known)}


def _report_errors(root: Node, layer: Layer, state: State, found: list[LaunchCommand] | None) -> None:
    if not root.has_error:
        return
    stack = [root]
    while stack and len(state.problems) < MOST_PROBLEMS:
        node = stack.pop()
        if node.is_missing or node.type == "ERROR":
            span = layer.root_span(Span(node.start_byte, node.end_byte))
            if found is None or LAUNCH.search(node.text or b"") or any(_near(c, span, state) for c in found):
                message, place = _what_is_wrong(node)
                state.problems.append(state.source.problem(message, layer.root_span(place)))
        elif node.has_error:
            stack.extend(reversed(node.children))


def _near(command: LaunchCommand, span: Span, state: State) -> bool:
    """Whether something stands in a launch or right after it."""
    return command.span.start <= span.start and command.span.end >= gap_start(state.source.data, span.start)


def _what_is_wrong(node: Node) -> tuple[Message, Span]:
    text = node.text or b""
    opened = [q for q in (b'"', b"'", b"`") if text.count(q) % 2]
    if node.is_missing and node.type in ('"', "'", "`") and node.parent is not None:
        start = node.parent.start_byte
    elif opened:
        start = node.start_byte + max(text.rfind(q) for q in opened)
    else:
        span = Span(node.start_byte, node.end_byte)
        shown = text.decode("utf-8", "replace").strip().partition("\n")[0][:60] or node.type
        return msg("This cannot be read as a shell command: {text}", text=shown), span
    message = msg("The quote that opens here, or one before it, is never closed.")
    return message, Span(start, start + 1)


_HANDLERS = {
    "command": _command,
    "variable_assignment": _assignment,
    "declaration_command": _declaration,
    "unset_command": _unset,
    "for_statement": _loop,
    "heredoc_redirect": _heredoc,
}
_LEAVES = {"command", "variable_assignment", "declaration_command", "unset_command", "heredoc_redirect", "comment"}
