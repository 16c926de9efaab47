"""What cannot be read: a problem with its place, or a value marked as not known; never an exception."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from trimtab.engine.command import read_commands

SERVE = "vllm serve org/m --port 1\n"


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        (b"vllm serve m\0 --a 1", 1, 13, "NUL"),
        (b"\x89PNG\r\n\x1a\n\0\0", 3, 1, "NUL"),
        (b"# caf\xe9\nvllm serve m", 1, 6, "0xE9"),
        (b"# \xc3\xa9\nvllm serve 'm\n--a 1", 2, 12, "never closed"),
        (b'vllm serve m --x "y', 1, 18, "never closed"),
        (b"services:\n  a: [1\n  b: 2\n# vllm", 3, 4, "not valid YAML"),
        (b"a: &x [*y]\nb: vllm serve m", 1, 8, "not valid YAML"),
        (b"services:\n  a:\n\timage: vllm/vllm-openai", 3, 1, "not valid YAML"),
        (b"{{- if .Values.x }}\nimage: vllm\n", 1, 1, "template"),
    ],
)
def test_says_where(text: bytes, line: int, column: int, words: str) -> None:
    (problem, *_) = read_commands(text).problems
    assert words in str(problem.message)
    assert (problem.line, problem.column) == (line, column)


def test_a_file_of_100_megabytes_is_refused_at_once() -> None:
    text = b"#" * 100_000_000
    started = time.process_time()
    (problem,) = read_commands(text).problems
    assert "100,000,000 bytes" in str(problem.message)
    assert time.process_time() - started < 1


def test_crlf_and_bom_are_kept() -> None:
    text = b"\xef\xbb\xbf# \xc3\xbc\r\nvllm serve m \\\r\n  --port 1 \\\r\n  --dtype half\r\n"
    (command,) = read_commands(text).commands
    assert command.source.data == text
    assert command.get("dtype") == "half"
    assert command.model is not None
    assert command.model.span is not None
    assert command.source.line_column(command.model.span.start) == (2, 12)
    assert command.source.line_column(3) == (1, 1)


def test_variables_that_name_each_other_end() -> None:
    text = 'A=$B; B=$A; A="$A$B"\n' + 'X="$X$X"; ' * 60 + "\nX=abcdefgh\n" + 'X="$X$X"\n' * 60 + "vllm serve $A --x $X"
    (command,) = read_commands(text).commands
    assert command.model is not None
    assert command.model.unknown
    assert command.flags[0].unknown


def test_billions_of_aliases_end() -> None:
    lines = ["a0: &a0 [vllm serve m]", *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30))]
    assert len(read_commands("\n".join(lines), "x.yaml").commands) == 1


def test_a_mapping_merged_into_itself_ends() -> None:
    read_commands("a: &a\n  <<: *a\n  image: vllm/vllm-openai\n  command: --model m\nservices: {x: *a}\n", "x.yaml")


def test_an_anchor_that_is_set_twice_is_taken_as_it_last_was() -> None:
    text = "a: &x 1\nb: &x vllm serve m\nc: *x\n"
    assert len(read_commands(text, "x.yaml").commands) == 1


def test_long_texts_take_no_longer_than_their_length() -> None:
    for line in ("--a 1\n", "export A=1\n", "X=1\n", "vllm serve m ) '\n", "# c \\\n"):
        times = []
        for count in (500, 16_000):
            started = time.process_time()
            read_commands("vllm serve m " + line * count, "x.sh")
            times.append(time.process_time() - started)
        assert times[1] < 300 * times[0] + 1  # 32 times the text; what is quadratic takes 1,024 times as long


def test_deep_nesting_ends() -> None:
    for text in ("[" * 5000, "{a: " * 3000, "$(" * 5000 + "vllm serve m", "${a:-" * 3000, "(" * 20000, '"$(' * 3000):
        read_commands("vllm serve x " + text)
        read_commands("a: " + text + " vllm", "x.yaml")


def test_nothing_outside_the_text_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = tmp_path / "ran"
    monkeypatch.setenv("PORT", "9999")
    (command,) = read_commands(f"vllm serve $(touch {mark}) --port $PORT --seed `touch {mark}`").commands
    assert not mark.exists()
    assert command.model is not None
    assert command.model.unknown
    assert [flag.unknown for flag in command.flags] == [True, True]


def test_flags_after_a_comment_are_read_and_reported() -> None:
    reading = read_commands("vllm serve m \\\n  --port 1 \\  # why\n  --dtype half \\\n  # why not\n  --seed 1 &\n")
    (command,) = reading.commands
    assert [flag.name for flag in command.flags] == ["port", "dtype", "seed"]
    assert [(p.line, p.column) for p in reading.problems] == [(3, 3), (5, 3)]


@pytest.mark.parametrize(
    "text", ["", "\n", "# only a comment", "vllm", "vllm serve --help", "pip install vllm", "a: b"]
)
def test_no_launch(text: str) -> None:
    reading = read_commands(text)
    assert (reading.commands, reading.problems) == ((), ())


def test_a_thousand_commands_in_two_seconds() -> None:
    started = time.process_time()
    reading = read_commands((SERVE.strip() + " --max-model-len 4096 --x '{\"a\": 1}'\n") * 1000)
    assert len(reading.commands) == 1000
    assert time.process_time() - started < 2


@pytest.mark.parametrize("before", ["{", "{1", "{1..", "{1..2", "{{", "a{", '"${', "${x/{"])
def test_a_brace_before_any_character_does_not_end_the_process(before: str) -> None:
    for char in ("ü", "\uffff", "\U00031860", "\U00053540", "\U000e0001", "\U0010fffd"):
        text = f"vllm serve m --served-model-name {before}{char} --seed {before}{char}"
        code = f"from trimtab.engine.command import read_commands; print(len(read_commands({text!r}, 'x.sh').commands))"
        if char == "\U00053540":
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=60)
            assert (done.returncode, done.stderr) == (0, b"")
        read_commands(text)
        read_commands(f"services:\n  a:\n    image: vllm/vllm-openai\n    command: -x {before}{char}\n", "x.yaml")


def test_what_stands_after_a_brace_is_kept() -> None:
    (command,) = read_commands("vllm serve m --served-model-name {模型} --seed 1").commands
    assert command.get("served-model-name") == "{模型}"
