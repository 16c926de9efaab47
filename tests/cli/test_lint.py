"""`trimtab lint` as a process: what it reads, how it writes, what it says of bad input, and its exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TRIMTAB = Path(sys.executable).with_name("trimtab")
BAD = "vllm serve org/model --swap-space 4 --dtype float\n"
GOOD = "vllm serve org/model --max-model-len 8192\n"
KEYS = {"code", "name", "severity", "message", "file", "line", "column", "span", "fix", "url", "evidence", "confidence"}


def lint(*words: str | Path, text: str | bytes | None = None, lang: str = "en") -> subprocess.CompletedProcess[bytes]:
    """One run without the user's configuration and environment."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("TRIMTAB_")}
    data = text.encode() if isinstance(text, str) else text
    command = (
        [TRIMTAB, "--lang", lang, "lint", *words, "--vllm", "0.26"] if "--" not in words else [TRIMTAB, "lint", *words]
    )
    return subprocess.run(command, input=data, capture_output=True, timeout=60, check=False, env=env)


def found(done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def codes(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    return [f["code"] for f in found(done)["findings"]]


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    file = tmp_path / "serve.sh"
    file.write_text(BAD)
    return file


def test_json_has_the_documented_keys(bad: Path) -> None:
    done = lint(bad, "--json")
    report = found(done)
    assert done.returncode == 1
    assert set(report) == {"schema", "vllm", "findings", "not_judged"}
    assert (report["schema"], report["vllm"]) == ("trimtab.findings/1", "0.26")
    first = report["findings"][0]
    assert set(first) == KEYS
    assert (first["code"], first["name"], first["severity"]) == ("CMD002", "flag-removed", "error")
    assert (first["file"], first["line"], first["column"], first["url"]) == (str(bad), 1, 22, "docs/rules/CMD002.md")
    start, end = first["span"]
    assert BAD.encode()[start:end].decode().startswith("--swap-space")
    assert first["fix"]["safe"] is True
    assert set(first["fix"]["edits"][0]) == {"span", "replacement"}
    assert first["confidence"] is None
    assert report["not_judged"]
    assert {"code", "needs"} == set(report["not_judged"][0])


def test_columns_count_characters_and_spans_count_bytes(tmp_path: Path) -> None:
    file = tmp_path / "serve.sh"
    file.write_text("vllm serve 模型/名 --swap-space 4\n")
    finding = next(f for f in found(lint(file, "--json"))["findings"] if f["code"] == "CMD002")
    assert finding["column"] == 17
    assert finding["span"][0] == len("vllm serve 模型/名 ".encode())


def test_text_ends_with_the_count_and_names_what_lacks(bad: Path) -> None:
    shown = lint(bad).stdout.decode()
    assert f"{bad}:1:22: error CMD002 flag-removed" in shown
    assert "not judged for lack of the" in shown
    assert shown.splitlines()[-1].startswith("1 errors, 1 warnings, 0 notes")
    assert "\x1b" not in shown


def test_sarif_is_one_run_with_rules_and_places(bad: Path) -> None:
    log = json.loads(lint(bad, "--format", "sarif").stdout)
    assert log["version"] == "2.1.0"
    run = log["runs"][0]
    assert {r["id"] for r in run["tool"]["driver"]["rules"]} == {r["ruleId"] for r in run["results"]}
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == str(bad)
    assert place["region"] == {"startLine": 1, "startColumn": 22}


def test_github_writes_one_annotation_a_finding(bad: Path) -> None:
    lines = lint(bad, "--format", "github").stdout.decode().splitlines()
    assert lines[0].startswith(f"::error file={bad},line=1,col=22,title=CMD002 flag-removed::")
    assert lines[1].startswith("::warning file=")


def test_markdown_is_a_table(bad: Path) -> None:
    lines = lint(bad, "--format", "markdown").stdout.decode().splitlines()
    assert lines[0] == "| place | severity | rule | what is wrong |"
    assert "[CMD002](docs/rules/CMD002.md)" in lines[2]


def test_an_unknown_format_is_refused(bad: Path) -> None:
    done = lint(bad, "--format", "xml")
    assert done.returncode == 2
    assert "text, json, sarif, github, markdown" in done.stderr.decode()


def test_messages_come_in_chinese_and_codes_do_not_change(bad: Path) -> None:
    english, chinese = found(lint(bad, "--json")), found(lint(bad, "--json", lang="zh"))
    for one, other in zip(english["findings"], chinese["findings"], strict=True):
        assert one["message"] != other["message"]
        assert any("\u4e00" <= c <= "\u9fff" for c in other["message"])
        assert {k: v for k, v in one.items() if k != "message"} == {k: v for k, v in other.items() if k != "message"}


@pytest.mark.parametrize(
    ("text", "threshold", "code"),
    [(GOOD, "info", 0), (BAD, "error", 1), ("vllm serve org/model --dtype float\n", "error", 0),
     ("vllm serve org/model --dtype float\n", "warning", 1)],
)  # fmt: skip
def test_exit_code_follows_the_threshold(text: str, threshold: str, code: int) -> None:
    assert lint("-", "--fail-on", threshold, text=text).returncode == code


@pytest.mark.parametrize("words", [("--fail-on", "never"), ("--select", "CMD999x"), ("--ignore", "nothing-like-it")])
def test_a_wrong_option_is_refused(words: tuple[str, str]) -> None:
    done = lint("-", *words, text=GOOD)
    assert done.returncode == 2
    assert words[1] in done.stderr.decode()


def test_select_and_ignore_take_codes_prefixes_and_names(bad: Path) -> None:
    assert codes(lint(bad, "--json", "--select", "CMD002")) == ["CMD002"]
    assert codes(lint(bad, "--json", "--select", "dtype-float-is-float32")) == ["CMD202"]
    assert codes(lint(bad, "--json", "--ignore", "CMD0,CMD202")) == []


def test_stdin_argument_and_words_are_the_same_command() -> None:
    piped = codes(lint("-", "--json", text=BAD))
    assert piped == codes(lint(BAD.strip(), "--json"))
    assert piped == codes(lint("--json", "--vllm", "0.26", "--", *BAD.split()))
    assert piped


def test_several_commands_in_one_file_are_several(tmp_path: Path) -> None:
    file = tmp_path / "serve.sh"
    file.write_text(f"#!/bin/sh\n{BAD}pip install vllm\n{GOOD}{BAD}vllm bench serve --model org/model\n")
    lines = [f["line"] for f in found(lint(file, "--json"))["findings"] if f["code"] == "CMD002"]
    assert lines == [2, 5]


def test_a_folder_is_searched_for_launch_files(tmp_path: Path, bad: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "compose.yaml").write_text(
        "services:\n  a:\n    image: vllm/vllm-openai:v0.26.0\n    command: --model org/model --swap-space 4\n"
    )
    (tmp_path / "deep" / "README.md").write_text(f"# How\n\n```bash\n{BAD}```\n")
    (tmp_path / "deep" / "code.py").write_text(f'"""{BAD}"""\n')
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "hook.sh").write_text(BAD)
    files = {Path(f["file"]).name for f in found(lint(tmp_path, "--json"))["findings"]}
    assert files == {"serve.sh", "compose.yaml", "README.md"}


def test_a_folder_goes_on_past_files_that_cannot_be_read(tmp_path: Path, bad: Path) -> None:
    (tmp_path / "chart.yaml").write_text("{{- if .Values.vllm }}\na: [\n{{- end }}\n")
    (tmp_path / "other.yaml").write_text("{{- broken\n")
    (tmp_path / "a.sh").write_bytes(b"vllm serve \0")
    (tmp_path / "huge.json").write_bytes(b"{" + b" " * (5 << 20))
    done = lint(tmp_path, "--json")
    assert done.returncode == 1
    assert "CMD002" in codes(done)
    said = done.stderr.decode()
    assert "chart.yaml" in said
    assert "huge.json is larger than 4 MiB" in said
    assert "other.yaml" not in said, "a file that does not speak of vLLM is none of ours"


def test_fix_writes_the_file_and_a_second_run_changes_nothing(bad: Path) -> None:
    assert lint(bad, "--fix", "--fail-on", "error").returncode == 0
    assert bad.read_text() == "vllm serve org/model --dtype float\n"
    assert lint(bad, "--fix", "--unsafe").returncode == 0
    assert bad.read_text() == "vllm serve org/model --dtype auto\n"
    before = bad.read_text()
    lint(bad, "--fix", "--unsafe")
    assert bad.read_text() == before


def test_fix_keeps_everything_else_byte_for_byte(tmp_path: Path) -> None:
    file = tmp_path / "serve.sh"
    file.write_bytes(
        b"\xef\xbb\xbf# \xe4\xb8\xad\r\nvllm serve org/model \\\r\n  --swap-space 4 \\\r\n  --port 80 # x\r\n"
    )
    lint(file, "--fix")
    assert file.read_bytes() == b"\xef\xbb\xbf# \xe4\xb8\xad\r\nvllm serve org/model \\\r\n  --port 80 # x\r\n"


def test_fix_of_stdin_gives_the_text_and_the_report_apart() -> None:
    done = lint("-", "--fix", text=BAD)
    assert done.stdout.decode() == "vllm serve org/model --dtype float\n"
    assert "CMD202" in done.stderr.decode()
    assert lint("-", "--fix", text=GOOD).stdout.decode() == GOOD


def test_diff_shows_and_changes_nothing(bad: Path) -> None:
    done = lint(bad, "--diff")
    assert done.stdout.decode().splitlines()[-2:] == [f"-{BAD.strip()}", "+vllm serve org/model --dtype float"]
    assert bad.read_text() == BAD
    assert done.returncode == 1
    assert lint("-", "--diff", "--fix", text=BAD).stdout.decode().startswith("--- -")


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve org/model --swap-space 4 # trimtab: ignore[CMD002]\n",
        "vllm serve org/model --swap-space 4 # trimtab: ignore\n",
        "# trimtab: ignore[flag-removed]\nvllm serve org/model \\\n  --swap-space 4\n",
        "# trimtab: ignore-file\n\n\nvllm serve org/model --swap-space 4\n",
    ],
)
def test_a_comment_suppresses(text: str) -> None:
    assert "CMD002" not in codes(lint("-", "--json", text=text))


def test_a_comment_for_another_rule_does_not_suppress() -> None:
    text = "vllm serve org/model --swap-space 4 # trimtab: ignore[CMD202]\n"
    assert "CMD002" in codes(lint("-", "--json", text=text))


def test_gpu_and_model_config_are_facts(tmp_path: Path) -> None:
    config = {"architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "num_attention_heads": 32,
              "num_key_value_heads": 8, "num_hidden_layers": 2, "intermediate_size": 14336, "vocab_size": 32000,
              "max_position_embeddings": 4096, "torch_dtype": "bfloat16", "model_type": "llama"}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    done = lint("vllm serve org/model -tp 3", "--json", "--gpu", "2xA10", "--model-config", tmp_path)
    assert {"CMD101", "CMD104"} <= set(codes(done))


def test_the_image_tag_names_the_version() -> None:
    text = "docker run --gpus all --ipc=host vllm/vllm-openai:v0.8.5 --model org/model --swap-space 4"
    env = {k: v for k, v in os.environ.items() if not k.startswith("TRIMTAB_")}
    done = subprocess.run([TRIMTAB, "lint", text, "--json"], capture_output=True, check=False, env=env)
    assert found(done)["vllm"] == "0.8.5"
    assert "CMD002" not in codes(done)


BINARY = b"\x7fELF\x02\x01\x01\0" + bytes(range(256)) * 4


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("serve.sh", BINARY, "NUL"),
        ("serve.sh", b"vllm serve org/model \0 --dtype float\n", ":1:22: Byte 21 is NUL"),
        ("serve.sh", "vllm serve org/model --served-model-name 错误\n".encode("gb18030"), ":1:42: Byte 41 is 0xB4"),
        ("compose.yaml", b"a: &a [*b]\nvllm: [\n", ":1:8: This is not valid YAML: found undefined alias"),
        ("compose.yaml", b"services:\n  a: [vllm\n", "This is not valid YAML"),
    ],
)  # fmt: skip
def test_unreadable_input_names_its_place(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    done = lint(file)
    assert done.returncode == 2
    assert said in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


def test_a_file_of_100_mb_is_refused_at_once(tmp_path: Path) -> None:
    file = tmp_path / "serve.sh"
    with file.open("wb") as stream:
        stream.truncate(100_000_000)
    done = lint(file)
    assert done.returncode == 2
    assert "larger than 4 MiB" in done.stderr.decode()
    done = lint("-", text=b"a" * (5 << 20))
    assert done.returncode == 2
    assert "- is larger than 4 MiB" in done.stderr.decode()


def test_an_unclosed_quote_is_an_error_though_no_rule_speaks() -> None:
    done = lint("-", "--select", "CMD002", text='vllm serve org/model --served-model-name "x\n')
    assert done.returncode == 1
    assert "-:1:42: The quote" in done.stderr.decode()


def test_what_can_be_read_is_judged_beside_what_cannot(bad: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.sh"
    broken.write_bytes(b"\0")
    done = lint(broken, bad, "--json")
    assert done.returncode == 2
    assert "CMD002" in codes(done)
    assert "broken.sh: nothing could be read" in done.stderr.decode()


def test_a_file_that_does_not_speak_of_vllm_may_be_anything(tmp_path: Path) -> None:
    file = tmp_path / "chart.yaml"
    file.write_text("{{- if .Values.on }}\na: [\n{{- end }}\n")
    assert lint(file).returncode == 0


def test_crlf_and_a_bom_do_not_shift_places(tmp_path: Path) -> None:
    file = tmp_path / "serve.sh"
    file.write_bytes(b"\xef\xbb\xbfvllm serve org/model \\\r\n  --port 80 \\\r\n  --swap-space 4\r\n")
    finding = found(lint(file, "--json"))["findings"][0]
    assert (finding["line"], finding["column"]) == (3, 3)
    file.write_bytes(b"\xef\xbb\xbfvllm serve org/model --swap-space 4\r\n")
    assert found(lint(file, "--json"))["findings"][0]["column"] == 22


def test_yaml_anchors_and_merge_keys_are_followed(tmp_path: Path) -> None:
    file = tmp_path / "compose.yaml"
    file.write_text(
        "x-base: &base\n  image: vllm/vllm-openai:v0.26.0\n  ipc: host\nservices:\n"
        "  a:\n    <<: *base\n    command: &c [--model, org/model, --swap-space, '4']\n"
        "  b:\n    <<: *base\n    command: *c\n"
    )
    findings = [f for f in found(lint(file, "--json"))["findings"] if f["code"] == "CMD002"]
    assert {(f["line"], f["column"]) for f in findings} == {(7, 38)}


def test_nested_aliases_do_not_multiply(tmp_path: Path) -> None:
    rows = ["vllm: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    file = tmp_path / "bomb.yaml"
    file.write_text("\n".join(rows))
    assert lint(file).returncode == 0


def test_nothing_is_run_and_recursive_variables_end(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    text = f"A=$B\nB=$A$A\nA=$A$A\nvllm serve $A --swap-space 4 --port $(touch {mark}) --api-key $HOME\n"
    done = lint("-", "--json", text=text)
    assert "CMD002" in codes(done)
    assert not mark.exists()
    assert os.environ["HOME"] not in done.stdout.decode()


@pytest.mark.parametrize("words", [(), ("no-such-file.sh",)])
def test_nothing_to_lint_is_a_usage_error(words: tuple[str, ...]) -> None:
    done = lint(*words)
    assert done.returncode == 2
    assert done.stderr.decode().startswith("trimtab: ")


def test_a_generation_decides_what_needs_no_memory() -> None:
    command = "vllm serve Qwen/Qwen2.5-7B-Instruct-AWQ --quantization awq\n"
    report = found(lint("-", "--gpu", "Volta (sm_70)", "--json", text=command))
    assert "CMD203" in [f["code"] for f in report["findings"]]
    assert {"code": "CMD501", "needs": "gpu"} in report["not_judged"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"schema": "trimtab.plan/99", "command": ["vllm", "serve", "m"]}', "is of schema trimtab.plan/99"),
        ('{"schema": "trimtab.verify/1"}', "is of schema trimtab.verify/1"),
        ('{"schema": "trimtab.plan/1", "command": ["vllm", "serve", "m"', "is a damaged plan"),
        ('{"schema": "trimtab.plan/1", "command": ["rm", "-rf", "m"]}', "is a damaged plan"),
        ('{"schema": "trimtab.plan/1"}', "is a damaged plan"),
    ],
)
def test_what_only_looks_like_a_plan(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    done = lint(file)
    assert (done.returncode, done.stdout) == (2, b"")
    assert said in done.stderr.decode()
    assert b"-> Make a plan anew" in done.stderr


def test_a_model_directory_without_chat_template(tmp_path: Path) -> None:
    files = {"config.json": {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}, "tokenizer_config.json": {}}
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    words = ["-", "--model-config", tmp_path, "--select", "CMD308", "--json"]
    assert {"code": "CMD308", "needs": "checkpoint"} in found(lint(*words, text=GOOD))["not_judged"]
    (tmp_path / "tokenizer.json").write_text("{}")
    assert codes(lint(*words, text=GOOD)) == ["CMD308"]
    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    assert codes(lint(*words, text=GOOD)) == []


def test_a_path_of_another_host_is_known_by_its_last_part() -> None:
    text = "vllm serve /models/Qwen2.5-7B-Instruct --tensor-parallel-size 8\n"
    assert "CMD101" in codes(lint("-", "--json", text=text))


def test_a_pipe_is_read_and_one_nobody_writes_to_is_empty(tmp_path: Path) -> None:
    pipe = tmp_path / "serve.sh"
    os.mkfifo(pipe)
    assert "no launch command found" in lint(pipe).stderr.decode()
    done = subprocess.run(
        ["bash", "-c", f"{TRIMTAB} lint --vllm 0.26 --json <(printf '{BAD[:-1]}\\n')"],
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert "CMD002" in codes(done)


def test_links_in_circles_devices_and_pipes_in_a_folder_are_passed_over(tmp_path: Path, bad: Path) -> None:
    (tmp_path / "around").symlink_to(tmp_path)
    (tmp_path / "self.sh").symlink_to(tmp_path / "self.sh")
    (tmp_path / "zero.sh").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe.sh")
    done = lint(tmp_path, "--json")
    assert {f["file"] for f in found(done)["findings"]} == {str(bad)}


def test_a_long_command_in_one_argument_is_no_file_name() -> None:
    done = lint(f"vllm serve org/m --swap-space 4 --served-model-name {'a' * 300}", "--json")
    assert (done.stderr, "CMD002" in codes(done)) == (b"", True)
    assert lint("~nobody-at-all/serve.sh").stderr.startswith(b"trimtab: there is no file")
    assert lint("--", "vllm", "serve", "~nobody-at-all/m", "--swap-space", "4").returncode == 1


@pytest.mark.parametrize("text", ['{"a":' * 10_000 + '"vllm serve org/m"', "[" * 20_000 + '"vllm"'])
def test_deep_json_says_where(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    done = lint(file)
    assert done.returncode == 2
    assert b"nested deeper than 100 levels" in done.stderr
    assert b"Traceback" not in done.stderr


def test_tags_make_nothing_and_nothing_is_run(tmp_path: Path) -> None:
    mark, file = tmp_path / "ran", tmp_path / "x.yaml"
    file.write_text(
        f"a: !!python/object/apply:os.system ['touch {mark}']\nservices:\n  s:\n"
        "    image: !!python/name:os.system vllm/vllm-openai:v0.26.0\n"
        f"    command: !foo [--model, $HOME, --swap-space, !!int '4', --seed, '$(touch {mark})']\n"
    )
    done = lint(file, "--json")
    assert "CMD002" in codes(done)
    assert not mark.exists()
    assert os.environ["HOME"].encode() not in done.stdout


def test_a_version_without_a_table_is_told_of() -> None:
    done = lint("--vllm", "0.99", "--", *GOOD.split())
    assert b"vLLM 0.99 is newer than every table here" in done.stderr
    assert done.returncode == 0


MANIFEST = """
kind: {kind}
spec:
  template:
    spec:
      containers:
      - image: vllm/vllm-openai:v0.20.0
        args: [--model, org/model, --tensor-parallel-size, "2"]
        resources: {{limits: {{nvidia.com/gpu: 1}}}}
"""


@pytest.mark.parametrize(("kind", "wanted"), [("Deployment", ["CMD104"]), ("LeaderWorkerSet", [])])
def test_the_gpus_of_a_container_are_counted(tmp_path: Path, kind: str, wanted: list[str]) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(MANIFEST.format(kind=kind))
    assert codes(lint(file, "--json", "--select", "CMD104")) == wanted


def test_no_memory_is_reckoned_for_a_model_or_a_share_that_cannot_be() -> None:
    newer = lint("--gpu", "A100", "--json", "--vllm", "0.6.6", "--", "vllm", "serve", "google/gemma-3-12b-it")
    assert codes(newer) == ["CMD304"]
    share = lint("vllm serve Qwen/Qwen2.5-7B-Instruct --gpu-memory-utilization 90", "--gpu", "A100", "--json")
    assert codes(share) == ["CMD012"]


def test_the_host_s_memory_is_an_option() -> None:
    words = ("vllm", "serve", "m", "-tp", "4", "--swap-space", "16")
    assert "CMD511" in codes(lint("--json", "--vllm", "0.9.2", "--host-memory", "64", "--", *words))
    assert "CMD511" not in codes(lint("--json", "--vllm", "0.9.2", "--host-memory", "640", "--", *words))
    assert lint("--host-memory", "0", "--", *words).returncode == 2
