"""Any text is read without an exception; an edit changes what it names and nothing else.

`scripts/fuzz` runs many more cases: it sets the number in TRIMTAB_FUZZ_CASES. A case that takes ten seconds is a hang.
"""

from __future__ import annotations

import json
import os
import shlex
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from trimtab.engine.command import LaunchCommand, Reading, apply_edits, read_commands

CASES = int(os.environ.get("TRIMTAB_FUZZ_CASES", "200"))
run = settings(
    max_examples=CASES, deadline=10_000, database=None, derandomize=CASES < 1000,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)  # fmt: skip

SCRAPS = st.sampled_from([
    "vllm serve ", "org/m", " --port 1", " --x=", "'", '"', "`", "$", "${", "}", "$(", ")", "(", "\\\n", "\\", "\n",
    "\r\n", " ", "\t", "#", " # c\n", "&", "|", ";", "<", ">", "<<EOF\n", "EOF\n",
    "python -m vllm.entrypoints.openai.api_server ", "docker run ", "--gpus all ", "vllm/vllm-openai:v0.6.3 ",
    "--model ", "bash -c ", "sh -lc '", "A=1 ", "A=$A ", "$A", "${A:-b}", "export ", "for i in 1; do ", "done",
    "if x; then ", "fi", "A=(--a 1)", '"${A[@]}"', "{", "[", "]", "ü", "日", "\ufeff", "\u2028", "- ", ": ", "a: ",
    "  ", "    ", "services:\n", "image: vllm/vllm-openai\n", "command: ", "args: ", "containers:\n", ">\n", "|\n",
    "|2-\n", "&a ", "*a", "<<: ", "---\n", "...", "%YAML 1.1\n", "!t ", "? ", "~", "model: m\n", "max-model-len: 1\n",
    "FROM vllm/vllm-openai\n", "CMD ", "ENTRYPOINT ", '["--model", "m"]', "ENV A=b\n", "[Service]\n", "ExecStart=",
    "%i", "Environment=A=b\n", "```bash\n", "```\n", "```yaml\n", "1. ", "> ",
])  # fmt: skip
TEXTS = st.lists(st.one_of(SCRAPS, SCRAPS, SCRAPS, st.text(max_size=4)), max_size=25).map("".join)
NAMES = st.sampled_from([None, "x.sh", "x.yaml", "Dockerfile", "x.service", "x.md"])
VALUES = st.one_of(
    st.sampled_from(["1", "0.9", "true", "null", "a b", '{"a": 1}', "it's", "$X", "a: b", "#c", "x,y", '"', "\\", "~"]),
    st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=6),
).filter(lambda v: not v.startswith("-") and v not in ("...", "…"))  # fmt: skip
FLAGS = st.lists(
    st.tuples(st.sampled_from(["--port", "--max_model_len", "--dtype", "--hf-overrides", "-tp", "--seed"]), VALUES),
    min_size=1, max_size=5, unique_by=lambda f: f[0],
)  # fmt: skip

EDITS = st.sampled_from(["set", "remove", "rename", "add"])


def flags_of(command: LaunchCommand) -> list[tuple[str, str | None]]:
    return [(flag.name, flag.value) for flag in command.flags]


def check_edit(command: LaunchCommand, text: str, filename: str | None, name: str, edit: str, value: str) -> None:
    """Make one edit, and read the text again."""
    before = flags_of(command)
    match edit:
        case "set":
            edits, after = command.edit_set(name, value), [(n, value if n == name else v) for n, v in before]
        case "remove":
            edits, after = command.edit_remove(name), [f for f in before if f[0] != name]
        case "rename":
            edits, after = command.edit_rename(name, "renamed"), [("renamed" if n == name else n, v) for n, v in before]
        case _:
            edits, after = command.edit_set("added", value), [*before, ("added", value)]
    assert flags_of(only(apply_edits(text, edits), filename)) == after


def only(text: str, filename: str | None) -> LaunchCommand:
    reading = read_commands(text, filename)
    assert not [str(p.message) for p in reading.problems], text
    (command,) = reading.commands
    return command


@run
@given(TEXTS, NAMES)
def test_any_text_is_read(text: str, filename: str | None) -> None:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        assume(False)
    reading = read_commands(data, filename)
    assert reading.source.data == data
    for problem in reading.problems:
        assert problem.line >= 1
        assert problem.column >= 1
        assert str(problem.message)
        assert problem.message.text("zh")
    check_reading(reading, data)


def check_reading(reading: Reading, data: bytes) -> None:
    text = data.decode()
    for command in reading.commands:
        assert command.argv()[:2] == ["vllm", "serve"]
        for flag in command.flags:
            for span in (flag.span, flag.spelling_span, flag.value_span or flag.span):
                assert 0 <= span.start <= span.end <= len(data)
            for edits in (
                command.edit_set(flag.dotted, "x"),
                command.edit_remove(flag.name),
                command.edit_rename(flag.name, "y"),
            ):
                apply_edits(text, edits)
        apply_edits(text, command.edit_set("added", "x"))


@run
@given(st.binary(max_size=200), NAMES)
def test_any_bytes_are_read(data: bytes, filename: str | None) -> None:
    assert read_commands(b"vllm serve m " + data, filename).source.data.endswith(data)


def quoted(value: str, how: int) -> str:
    if how == 0 or any(c in value for c in '"$`\\!'):
        return shlex.quote(value)
    return f'"{value}"' if how == 1 else shlex.quote(value)


@st.composite
def scripts(draw: st.DrawFn) -> tuple[str, list[tuple[str, str]]]:
    """A shell script with one launch, in some layout."""
    flags = draw(FLAGS)
    separator = draw(st.sampled_from([" ", "  ", " \\\n  ", " \\\r\n\t"]))
    words = []
    for spelling, value in flags:
        join = "=" if spelling.startswith("--") and draw(st.booleans()) else " "
        words.append(f"{spelling}{join}{quoted(value, draw(st.integers(0, 2)))}")
    head = draw(st.sampled_from(["", "#!/bin/sh\n# ü\n", "export A=1\n", "\ufeff"]))
    tail = draw(st.sampled_from(["", "\n", " # why\n", " &\n", " > log 2>&1 &\nwait\n", " | tee log\n"]))
    start = draw(st.sampled_from(["vllm serve m", "A=1 python3 -m vllm.entrypoints.openai.api_server",
                                  "docker run -e A=b vllm/vllm-openai:v0.9.0"]))  # fmt: skip
    return head + start + separator + separator.join(words) + tail, flags


def canonical(flags: list[tuple[str, str]]) -> list[tuple[str, str | None]]:
    names = {"-tp": "tensor-parallel-size"}
    return [(names.get(f, f.lstrip("-").replace("_", "-")), v) for f, v in flags]


@run
@given(scripts(), VALUES, st.integers(0, 4), EDITS)
def test_edits_of_shell(script: tuple[str, list[tuple[str, str]]], value: str, which: int, edit: str) -> None:
    text, flags = script
    command = only(text, None)
    assert flags_of(command) == canonical(flags)
    check_edit(command, text, None, canonical(flags)[which % len(flags)][0], edit, value)


@st.composite
def manifests(draw: st.DrawFn) -> tuple[str, list[tuple[str, str]]]:
    """A compose or Kubernetes file with one launch, its arguments in some YAML style."""
    flags = draw(FLAGS)
    words: list[str] = []
    for spelling, value in flags:
        words += [f"{spelling}={value}"] if spelling.startswith("--") and draw(st.booleans()) else [spelling, value]
    image = draw(st.sampled_from(["image: vllm/vllm-openai:v0.9.0  # c", '"image": "vllm/vllm-openai"']))
    style = draw(st.sampled_from(["block", "flow", "lines", "literal", "folded"]))
    if style in ("literal", "folded"):
        script = "exec vllm serve m " + (" \\\n" if style == "literal" else " ").join(map(shlex.quote, words))
        indented = script.replace("\n", "\n            ")
        mark = "|" if style == "literal" else ">-"
        args = f"command: [sh, -c]\n        args:\n          - {mark}\n            {indented}\n"
    elif style == "flow":
        args = f"args: [{', '.join(double(w) for w in words)}]\n"
    elif style == "lines":
        args = "args: [\n" + ",\n".join(f"          {single(w)}" for w in words) + "]\n"
    else:
        args = "args:\n" + "".join(f"        - {draw(st.sampled_from([single, double]))(w)}\n" for w in words)
    tail = draw(st.sampled_from(["", "---\nkind: Service\n", "# end\n"]))
    return f"kind: Pod # ü\nspec:\n  containers:\n      - {image}\n        {args}{tail}", flags


def double(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def single(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@run
@given(manifests(), VALUES, st.integers(0, 4), EDITS)
def test_edits_of_yaml(manifest: tuple[str, list[tuple[str, str]]], value: str, which: int, edit: str) -> None:
    text, flags = manifest
    command = only(text, "x.yaml")
    assert flags_of(command) == canonical(flags)
    check_edit(command, text, "x.yaml", canonical(flags)[which % len(flags)][0], edit, value)


CONFIG: Any = st.dictionaries(
    st.sampled_from(["port", "dtype", "max_model_len", "served-model-name"]), VALUES, min_size=1
)


@run
@given(CONFIG, VALUES, st.booleans(), EDITS)
def test_edits_of_a_config_file(values: dict[str, str], value: str, crlf: bool, edit: str) -> None:
    text = "# ü\nmax-num-seqs: 8  # c\n" + "".join(f"{k}: {single(v)}\n" for k, v in values.items())
    text = text.replace("\n", "\r\n") if crlf else text
    check_edit(only(text, "x.yaml"), text, "x.yaml", next(iter(values)).replace("_", "-"), edit, value)
