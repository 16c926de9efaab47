"""A configuration's text: each fault at its line, with the nearest name."""

import pytest

from trimtab.gateway.config import Config
from trimtab.gateway.reading import read

FAULTS = {
    "a key in the file": (
        b"back_ends: {b: {url: http://h, key: sk-1}}", 1, "back_ends.b.key names no place of a key", "key: {env: NAME}"
    ),
    "unknown field": (b"listen: a:1\nstor: x\n", 2, "there is no field 'stor' in the file", "Did you mean store?"),
    "unknown field below": (
        b"back_ends:\n  a:\n    url: http://h\n    kindd: vllm\n", 4, "there is no field 'kindd' in back_ends.a",
        "Did you mean kind?",
    ),
    "wrong kind": (b"back_ends:\n  a: {url: http://h, kind: vlm}\n", 2, "Invalid enum value 'vlm'", "mean vllm?"),
    "missing": (b"back_ends:\n  a: {kind: vllm}\n", 2, "back_ends.a has no url", "Add it"),
    "text for a list": (b"models:\n  m:\n    fall_back: x\n", 3, "models.m.fall_back: Expected a list, got `str`", ""),
    "text for a switch": (b"local: 'yes'\n", 1, "local: Expected `bool`, got `str`", ""),
    "below zero": (b"idle_timeout: -1\n", 1, "idle_timeout: Expected `float` > 0.0", ""),
    "twice": (b"local: true\nlocal: false\n", 2, "'local' stands twice in the file", "Keep one"),
    "list for fields": (b"- a\n", 1, "the file holds a list, not fields", ""),
    "value for fields": (b"models: 3\n", 1, "models holds the value '3', not fields", ""),
    "two documents": (b"local: true\n---\nlocal: true\n", 3, "a second document begins here", ""),
    "no YAML": (b"models: {a: [\n", 2, "This is not valid YAML", ""),
    "not UTF-8": (b"listen: \xff\n", 1, "", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_with_its_line(name: str) -> None:
    text, line, message, hint = FAULTS[name]
    reading = read(text, "gateway.yaml")
    assert reading.config is None
    assert reading.findings[0].line == line
    assert message in str(reading.findings[0].message)
    assert hint in str(reading.findings[0].hint)


def test_all_faults_are_told_at_once() -> None:
    reading = read(b"stor: x\nlocal: 3\nmodels: {m: {choose: best}}\n", "gateway.yaml")
    assert [finding.line for finding in reading.findings] == [1, 2, 3]


def test_an_empty_file_holds_the_defaults() -> None:
    assert read(b"", "").config == Config()
    assert read(b"# nothing\n", "").config == Config()


def test_merge_keys_bring_fields_and_own_ones_win() -> None:
    text = b"back_ends:\n  a: &a {url: http://h:1, kind: vllm}\n  b: {<<: *a, url: http://h:2}\n"
    config = read(text, "").config
    assert config is not None
    assert (config.back_ends["b"].url, config.back_ends["b"].kind) == ("http://h:2", "vllm")


def test_an_alias_of_itself_ends_with_a_finding() -> None:
    assert read(b"models: &m {x: *m}\n", "").findings
