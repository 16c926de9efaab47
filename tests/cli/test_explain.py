"""`trimtab explain` and `trimtab flags diff` as a user runs them."""

from __future__ import annotations

import json

import pytest

from trimtab.cli.main import run
from trimtab.engine import flags
from trimtab.engine.flags.about import about, short_list, term_names
from trimtab.engine.flags.explanation import explain


def test_explain_of_a_gone_flag_says_since_when_and_what_instead(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "--vllm", "0.33", "swap-space"]) == 0
    text = capsys.readouterr().out
    assert "0.17" in text
    assert "--kv-offloading-size" in text


def test_explain_alone_lists_the_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain"]) == 0
    text = capsys.readouterr().out
    for heading in ("Model loading", "Memory", "Concurrency", "Parallelism", "Service"):
        assert heading in text
    assert "not in vLLM" in text


def test_explain_in_chinese(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--lang", "zh", "explain", "max_model_len"]) == 0
    assert "400" in capsys.readouterr().out


def test_explain_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "VLLM_USE_V1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "trimtab.explain/1"
    assert found["present"] is False
    assert found["known"] == {"since": "0.6", "until": "0.10"}


@pytest.mark.parametrize(
    ("word", "near"),
    [("max-modellen", "--max-model-len"), ("kv cash", "kv cache"), ("VLLM_ATENTION_BACKEND", "VLLM_ATTENTION_BACKEND")],
)
def test_unknown_word_names_the_nearest(word: str, near: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", word]) == 2
    assert near in capsys.readouterr().err


@pytest.mark.parametrize("word", ["", "-", "--", "\x00", "%s", "{x}", "a" * 10_000])
def test_odd_words_are_refused(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "--json", "--", word]) in (0, 2)
    assert "Traceback" not in capsys.readouterr().err


def test_explain_of_a_rule_prints_its_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "cmd002"]) == 0
    assert "# CMD002" in capsys.readouterr().out
    assert run(["explain", "CMD002", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["code"] == "CMD002"
    assert run(["explain", "CMD999"]) == 2
    assert run(["explain", "flag-removed"]) == 0
    assert "# CMD002" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("word", "name"),
    [("TP", "tensor parallel"), ("PagedAttention", "paged attention"), ("MoE", "mixture of experts"),
     ("投机解码", "speculative decoding"), ("OOM", "out of memory"), ("张量并行", "tensor parallel")],
)  # fmt: skip
def test_terms_have_other_names(word: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", word]) == 0
    assert capsys.readouterr().out.startswith(name)


def test_every_name_has_a_history() -> None:
    for name in flags.known_names():
        span = flags.history(name)
        assert span is not None
        assert span.holds(span.until or flags.minors()[-1])


def test_diff(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["flags", "diff", "0.10", "0.33", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    removed = {row["name"]: row["instead"] for row in found["removed"]}
    assert "--swap-space" in removed
    assert {"name": "--cuda-graph-sizes", "to": "--cudagraph-capture-sizes"} in found["renamed"]
    assert any(c["name"] == "--gpu-memory-utilization" and c["after"] == 0.92 for c in found["changed"])


def test_diff_with_itself_is_empty() -> None:
    found = flags.diff("0.26", "0.26")
    assert (found.added, found.removed, found.changed) == ((), (), ())


def test_diff_of_no_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["flags", "diff", "0.10", "latest"]) == 2
    assert "latest" in capsys.readouterr().err


def test_every_flag_and_variable_is_explained_in_both_languages() -> None:
    table = flags.FlagTable.for_version()
    variables = {v.name for minor in flags.minors() for v in flags.FlagTable.for_version(minor).environment}
    for name in (*flags.known_names(), *sorted(variables)):
        found = explain(name, table)
        assert found is not None, name
        assert found.words is not None, name
        assert found.words.what.en.strip().endswith("."), name
        assert found.words.what.zh.endswith("。"), name
        assert found.words.what.en not in (name, ""), name


def test_every_flag_that_is_gone_says_what_to_do() -> None:
    gone = [name for name in flags.known_names() if (span := flags.history(name)) and span.until]
    assert [name for name in gone if flags.successor(name) is None] == []


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_explain_of_a_variable(lang: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--lang", lang, "explain", "VLLM_PORT"]) == 0
    assert {"en": "not the API's", "zh": "不是 API 端口"}[lang] in capsys.readouterr().out


def test_explain_tells_what_must_and_must_not_stand_beside(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "--max-loras", "--vllm", "0.26"]) == 0
    assert "needs: --enable-lora" in capsys.readouterr().out
    assert run(["explain", "--spec-method", "--vllm", "0.26", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["excludes"] == ["--speculative-config.method"]
    assert run(["explain", "--speculative-config", "--vllm", "0.22", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["excludes"] == []


def test_explain_alone_tells_that_the_card_decides(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "--vllm", "0.33"]) == 0
    assert "default 256 to 1024, by the card" in capsys.readouterr().out


def test_explain_tells_the_engine(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "--num-scheduler-steps", "--vllm", "0.9"]) == 0
    text = capsys.readouterr().out
    assert "V0 alone; V1 runs by default" in text
    assert "VLLM_USE_V1=1" in text


def test_every_word_of_ours_is_about_a_real_flag_in_both_languages() -> None:
    known = set(flags.known_names())
    written = [entry for name in known if (entry := about(name))]
    assert len(written) >= 80
    for entry in (*written, *short_list()):
        assert entry.name in known
        assert entry.what.en != entry.what.zh
        assert set(entry.goes_with) | set(entry.excludes) <= known


def test_every_term_is_explained() -> None:
    table = flags.FlagTable.for_version()
    for name in term_names():
        found = explain(name, table)
        assert found is not None
        assert found.term is not None
        assert set(found.term.flags) <= set(flags.known_names())
