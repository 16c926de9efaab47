"""Texts made to blow up (aliases, merges and variables that multiply, nesting): time and memory are bounded."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from trimtab.engine.command import read_commands
from trimtab.rules.lint import LintFacts, lint


@contextmanager
def ending() -> Iterator[None]:
    """CPU time of this process, so that a busy machine does not matter: what multiplies takes hours, not a minute."""
    started = time.process_time()
    yield
    assert time.process_time() - started < 60


DOUBLED = {
    "array": "A=(--a 1)\n" + 'A=("${A[@]}" "${A[@]}")\n' * 60 + 'vllm serve org/m "${A[@]}" --port 1\n',
    "list": "X='--a 1'\n" + 'X="$X $X"\n' * 60 + "vllm serve org/m $X --port 1\n",
    "list used often": "X='" + "--a 1 " * 5000 + "'\nvllm serve org/m " + "$X " * 20_000 + "--port 1\n",
    "script": "X='vllm serve org/m --a 1 --port 1'\n" + 'bash -c "$X"\n' * 20_000,
}


@pytest.mark.parametrize("name", DOUBLED)
def test_variables_that_multiply_end(name: str) -> None:
    with ending():
        reading = read_commands(DOUBLED[name], "x.sh")
    assert reading.commands or "grows to" in str(reading.problems[0].message)
    assert all(command.get("port") == "1" for command in reading.commands)
    assert sum(len(command.words) for command in reading.commands) < 300_000


def test_the_array_that_doubles_stays_small_in_memory() -> None:
    limited = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "from trimtab.engine.command import read_commands\n"
        "from tests.engine.test_bounds import DOUBLED\n"
        "print(len(read_commands(DOUBLED['array'], 'x.sh').source.data))"
    )
    done = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == f"{len(DOUBLED['array'])}\n", done.stderr


def test_container_variables_that_multiply_end() -> None:
    env = "".join(f"  - {{name: A{i}, value: '{f'$(A{i - 1})' * 10}'}}\n" for i in range(1, 30))
    text = (
        "containers:\n- image: vllm/vllm-openai:v0.26.0\n  env:\n  - {name: A0, value: abcdefghij}\n"
        f"{env}  args: [--model, org/m, --served-model-name, $(A29)]\n"
    )
    with ending():
        (command,) = read_commands(text, "x.yaml").commands
    (name,) = command.all("served-model-name")
    assert name.unknown


def test_merges_that_multiply_end() -> None:
    merged = "".join(f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}], k{i}: 1}}\n" for i in range(1, 18))
    text = (
        f"a0: &a0 {{ipc: host}}\n{merged}services:\n  s:\n    <<: *a17\n    image: vllm/vllm-openai:v0.26.0\n"
        "    command: --model org/m\n"
    )
    with ending():
        (command,) = read_commands(text, "x.yaml").commands
    assert command.container is not None
    assert command.container.ipc is not None
    assert command.container.ipc.text == "host"


def test_a_config_whose_aliases_multiply_ends() -> None:
    lines = [f"  a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 19)]
    text = "model: org/m\nmax-model-len: 10\nhf-overrides:\n  a0: &a0 [x, x]\n" + "".join(lines)
    with ending():
        (command,) = read_commands(text, "x.yaml").commands
    assert command.get("max-model-len") == "10"
    assert len(command.get("hf-overrides") or "") < 200_000


def test_a_service_that_is_named_many_times_is_read_once() -> None:
    services = "".join(f"  s{i}: *s\n" for i in range(2000))
    text = f"x: &s\n  image: vllm/vllm-openai:v0.26.0\n  command: [--model, org/m]\nservices:\n{services}"
    assert len(read_commands(text, "x.yaml").commands) == 1


def test_launches_beyond_all_reason_are_left_out_and_said_so() -> None:
    words = ", --seed, '1'" * 500
    services = "".join(f"  s{i}: {{<<: *s}}\n" for i in range(500))
    text = f"x: &s\n  image: vllm/vllm-openai:v0.26.0\n  command: [--model, m{words}]\nservices:\n{services}"
    reading = read_commands(text, "x.yaml")
    assert 100 < len(reading.commands) < 300
    assert [str(p.message) for p in reading.problems] == [
        "From here on launches are left out: this text grows to too many words."
    ]
    assert reading.problems[0].line > 100


def test_a_launch_of_a_million_bytes_is_told_of() -> None:
    reading = read_commands("# x\nvllm serve org/m " + "--swap-space 1 " * 60_000 + "\nvllm serve org/n\n", "x.sh")
    assert [command.model and command.model.text for command in reading.commands] == ["org/n"]
    assert [(p.line, p.column, str(p.message)) for p in reading.problems] == [
        (2, 1, "This launch grows to 120,003 words; at most 2,000 are read.")
    ]


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_deep_yaml_says_where(opening: str) -> None:
    with ending():
        reading = read_commands("a: 1\nb:\n  " + opening * 10_000 + "vllm serve org/m", "x.yaml")
    (problem,) = reading.problems
    assert str(problem.message) == "This YAML is nested deeper than 100 levels."
    assert problem.line == 3
    assert problem.column > 50


def test_yaml_within_yaml_ends() -> None:
    text = "".join(" " * i + "a: |\n" for i in range(90)) + " " * 90 + "vllm serve org/m\n"
    with ending():
        assert read_commands(text, "x.yaml").commands == ()


def test_lines_of_markdown_and_places_take_no_longer_than_their_number() -> None:
    text = "# x\n\n```bash\n" + "vllm serve org/m \\\n  --port 1\n" * 2000 + "```\n"
    with ending():
        assert len(read_commands(text, "x.md").commands) == 2000


def test_a_line_separator_in_markdown_hides_nothing() -> None:
    text = "ü\u2028\n```bash\nvllm serve org/m --served-model-name a\u2028b # ü\n```\n"
    (command,) = read_commands(text, "x.md").commands
    assert command.get("served-model-name") == "a\u2028b"


SILLY = [
    "--max-model-len " + "9" * 5000,
    "--max-num-seqs ² --port ²",
    "--max-model-len 10" + "0" * 400 + " --gpu-memory-utilization 1e999 --swap-space nan --cpu-offload-gb inf",
    "-tp 100000000 -pp 100000000 --max-model-len 100000000000000000000 --max-num-seqs 10000000000",
    "-tp 0 -pp 0 -dp 0 --max-model-len 0 --max-num-seqs 0 --block-size 0 --kv-cache-memory-bytes 0",
    "-tp -1 -pp -3 --max-model-len -5 --max-num-seqs -7 --gpu-memory-utilization -0.5 --block-size -16",
    "--hf-overrides '" + '{"a":' * 10_000 + "1" + "}" * 10_000 + "'",
    "--compilation-config '" + "[" * 10_000 + "]" * 10_000 + "'",
    "--speculative-config '" + "[" * 10_000 + "' --limit-mm-per-prompt '" + '{"a":' * 10_000 + "'",
    "--limit-mm-per-prompt image=" + "9" * 5000,
    '--compilation-config \'{"cudagraph_capture_sizes": [' + "9" * 5000 + "]}' --max-num-batched-tokens 1e5",
    "--served-model-name " + "a" * 500_000,
]


@pytest.mark.parametrize("flags", SILLY, ids=lambda flags: str(flags)[:30])
def test_silly_values_are_judged_without_an_exception(flags: str) -> None:
    from trimtab.facts.catalogue.lookup import find_model
    from trimtab.facts.gpu import parse_gpus

    model = find_model("Qwen/Qwen2.5-7B-Instruct").facts()
    facts = LintFacts(vllm="0.26", gpus=parse_gpus("8xH100-80"), model_of=lambda command: model, host_gib=64.0)
    with ending():
        linted = lint(f"vllm serve Qwen/Qwen2.5-7B-Instruct {flags}\n", filename="x.sh", facts=facts)
    assert len(linted.commands) == 1
    for version in ("0.6", "0.9", "0.33"):
        lint(f"vllm serve Qwen/Qwen2.5-7B-Instruct {flags}\n", facts=LintFacts(vllm=version, gpus=facts.gpus))


def test_places_of_many_findings_are_right() -> None:
    text = "# ü\n" + "vllm serve org/m --swap-space 4\n" * 50
    findings = lint(text, filename="x.sh", facts=LintFacts(vllm="0.26")).report.findings
    lines = [f.line for f in findings if f.rule.code == "CMD002"]
    assert lines == list(range(2, 52))
    assert all(a.span is not None and b.span is not None and a.span < b.span for a, b in pairwise(findings))


def test_nothing_is_mended_in_a_command_with_an_open_quote() -> None:
    text = "vllm serve org/a --swap-space 4\nvllm serve org/m --swap-space 4 --served-model-name 'abc\n  --seed 1\n"
    linted = lint(text, filename="x.sh", facts=LintFacts(vllm="0.26"))
    mendable = {f.line: f.fix is not None for f in linted.report.findings if f.rule.code == "CMD002"}
    assert mendable == {1: True, 2: False}
    assert "CMD008" not in [f.rule.code for f in linted.report.findings]


def test_a_comment_that_silences_stands_on_the_line_that_editors_count() -> None:
    text = "# a\u2028b\x0cc\nvllm serve org/m --swap-space 4 # trimtab: ignore\nvllm serve org/n --swap-space 4\n"
    findings = lint(text, filename="x.sh", facts=LintFacts(vllm="0.26")).report.findings
    assert [f.line for f in findings if f.rule.code == "CMD002"] == [3]
