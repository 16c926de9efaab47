"""What each flag means to V0, V1 and the V2 model runner, as the tables have it from vLLM's source."""

from __future__ import annotations

import pytest

from trimtab.engine import flags
from trimtab.engine.flags import FlagTable
from trimtab.engine.flags.generation import meanings
from trimtab.engine.flags.versions import read


@pytest.mark.parametrize(
    ("minor", "engines"),
    [("0.4", "V0"), ("0.5", "V0"), ("0.6", "V0 V1"), ("0.7", "V0 V1"), ("0.8", "V1 V0"), ("0.10", "V1 V0"),
     ("0.11", "V1"), ("0.33", "V1")],
)  # fmt: skip
def test_engines_of_a_version(minor: str, engines: str) -> None:
    assert read(minor).engines == engines


@pytest.mark.parametrize(
    ("version", "name", "engine", "unsupported"),
    [
        ("0.7", "--cpu-offload-gb", "V0", ()),
        ("0.7", "--enable-chunked-prefill", None, ()),
        ("0.9", "--swap-space", "V0", ()),
        ("0.9", "--num-scheduler-steps", "V0", ("V1",)),
        ("0.9", "--kv-cache-dtype", None, ("V1",)),
        ("0.9", "--max-model-len", None, ()),
        ("0.10", "--prefix-caching-hash-algo", "V1", ()),
        ("0.13", "--swap-space", "V0", ()),
        ("0.26", "--enable-prompt-embeds", None, ("V2 runner",)),
        ("0.26", "--tensor-parallel-size", None, ()),
        ("0.28", "--enable-dbo", None, ("V2 runner",)),
    ],
)
def test_meaning_of_a_flag(version: str, name: str, engine: str | None, unsupported: tuple[str, ...]) -> None:
    spec = FlagTable.for_version(version).find(name)
    assert spec is not None
    assert (spec.engine, spec.unsupported) == (engine, unsupported)


def test_no_flag_acts_on_an_engine_that_came_later() -> None:
    for minor in flags.minors():
        table = read(minor)
        if table.engines == "V0":
            assert [f.name for f in table.flags if f.engine or f.unsupported] == []
        if table.engines == "V1":
            assert [f.name for f in table.flags if f.engine == "V1"] == []


@pytest.mark.parametrize(
    ("version", "name", "said"),
    [
        ("0.33", "--ubatch-size", ["V1, the only engine of this version"]),
        (
            "0.13",
            "--max-long-partial-prefills",
            [
                "V0 alone, which this version no longer has",
                "this version refuses some of its values, or some beside other flags",
            ],
        ),
        ("0.13", "--swap-space", ["V0 alone, which this version no longer has: without effect"]),
        ("0.10", "--prefix-caching-hash-algo", ["V1 alone; V0 ignores it; V1 runs by default"]),
        ("0.7", "--swap-space", ["V0 alone; V1 ignores it; V0 runs by default"]),
        ("0.9", "--max-model-len", ["V0 and V1; V1 runs by default"]),
    ],
)
def test_meaning_in_words(version: str, name: str, said: list[str]) -> None:
    table = FlagTable.for_version(version)
    spec = table.find(name)
    assert spec is not None
    assert [str(m) for m in meanings(spec, table.engines)] == said


def test_diff_and_history_tell_of_a_change() -> None:
    changed = {(c.name, c.field): (c.before, c.after) for c in flags.diff("0.9", "0.10").changed}
    assert changed["--otlp-traces-endpoint", "engine"] == ("V0", "V1 V0")
    assert changed["--otlp-traces-endpoint", "unsupported"] == (("V1",), ())
    assert ("--max-model-len", "engine") not in {(c.name, c.field) for c in flags.diff("0.10", "0.11").changed}
    assert [c.after for c in flags.changes("--max-logprobs") if c.field == "engine"] == ["V0 V1"]
