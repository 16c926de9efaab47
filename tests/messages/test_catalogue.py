"""The Chinese catalogue: each template has one translation with the same values, and `--lang zh` prints it."""

from __future__ import annotations

import ast
import os
import re
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from tests.ports import free_port
from trimtab.messages import msg

TOP = Path(__file__).parents[2]
SOURCES = TOP / "src" / "trimtab"
PO = SOURCES / "messages" / "zh" / "LC_MESSAGES" / "trimtab.po"
MODEL = TOP / "tests" / "fixtures" / "models" / "qwen2.5-7b.json"

with PO.open("rb") as _stream:
    TRANSLATED = {str(m.id): str(m.string) for m in read_po(_stream, locale="zh") if m.id}


def fields(template: str) -> set[tuple[str, str | None, str | None]]:
    """(name, conversion, format spec) of each placeholder."""
    return {(name, how, spec) for _, name, spec, how in string.Formatter().parse(template) if name is not None}


class Value:
    """Takes every conversion and format spec and shows which."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __format__(self, spec: str) -> str:
        return f"<{self.name}:{spec}>"

    def __repr__(self) -> str:
        return f"<{self.name}!r>"


def chinese(text: str) -> bool:
    return any("\u4e00" <= c <= "\u9fff" for c in text)


def both_languages_in_the_source() -> Iterator[tuple[str, str, str]]:
    """Where, English and Chinese of each `msg()` that brings its own translation."""
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "msg" and node.args:
                own = [k.value for k in node.keywords if k.arg == "zh"]
                texts = [a.value for a in (node.args[0], *own) if isinstance(a, ast.Constant)]
                if len(texts) == 2:
                    yield f"{path.relative_to(SOURCES)}:{node.lineno}", str(texts[0]), str(texts[1])


def script(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOP / "scripts" / "messages"), *args]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_catalogue_is_complete_and_up_to_date() -> None:
    done = script("--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_translations_have_the_placeholders_of_their_templates() -> None:
    assert len(TRANSLATED) > 500
    assert [t for t, zh in TRANSLATED.items() if fields(t) != fields(zh)] == []


def test_translations_in_the_source_have_the_placeholders_of_their_templates() -> None:
    found = list(both_languages_in_the_source())
    assert len(found) > 100
    assert [place for place, en, zh in found if fields(en) != fields(zh)] == []


def test_every_translation_renders_with_all_its_values_from_the_compiled_catalogue() -> None:
    for template, zh in TRANSLATED.items():
        values = {name: Value(name) for name, _, _ in fields(template)}
        assert msg(template, **values).text("zh") == zh.format(**values)


def test_only_names_and_bare_values_stay_as_they_are() -> None:
    """A template whose translation has no Chinese holds no English sentence either."""
    kept = [t for t, zh in TRANSLATED.items() if not chinese(zh)]
    assert [t for t in kept if len(re.findall(r"(?<![\w{])[a-z]{3,}(?![\w}])", t)) > 2] == []


def test_no_half_width_punctuation_after_chinese() -> None:
    assert [zh for zh in TRANSLATED.values() if re.search(r"[\u4e00-\u9fff][,;!?]|[\u4e00-\u9fff]: ", zh)] == []


def trimtab(lang: str, *args: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if k != "TRIMTAB_LANG"}
    command = [sys.executable, "-m", "trimtab", "--lang", lang, *args]
    return subprocess.run(command, capture_output=True, text=True, env=env, encoding="utf-8", check=False)


def numbers(text: str) -> list[str]:
    return sorted(re.findall(r"\d+(?:[.,]\d+)*", text))


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["plan", str(MODEL), "--gpu", "H100-80"], "KV 缓存"),
        (["plan", str(MODEL), "--gpu", "8GiB", "--context", "32768"], "放不下"),
        (["budget", "--gpu", "A10", "--model-config", str(MODEL), "--", "vllm", "serve", "m"], "结论"),
        (["lint", "--", "vllm", "serve", "m", "--gpu-memory-utilization", "1.2"], "个错误"),
        (["verify", f"http://127.0.0.1:{free_port()}/v1"], "无法连接"),
        (["down", "nobody"], "没有名为 'nobody' 的服务"),
        (["explain", "max-model-len"], "默认值"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_a_verb_says_the_same_in_chinese(args: list[str], said: str) -> None:
    english, zh = trimtab("en", *args), trimtab("zh", *args)
    assert zh.returncode == english.returncode
    assert not chinese(english.stdout + english.stderr)
    assert said in zh.stdout + zh.stderr
    assert numbers(zh.stdout + zh.stderr) == numbers(english.stdout + english.stderr)


def test_ps_without_servers_in_chinese(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    done = trimtab("zh", "ps")
    assert (done.returncode, done.stdout) == (0, "没有正在运行的服务\n")
