"""`trimtab plan`: what it prints, its data, and every wrong wish with the reason and the next step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trimtab.cli.main import run

QWEN = "Qwen/Qwen2.5-7B-Instruct"
ARTICLE = ["plan", "Qwen/Qwen2.5-72B-Instruct", "--gpu", "8xA10", "--context", "32768", "--concurrency", "2"]


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Models are known without the hub, whatever this machine has of them."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


def test_the_text_holds_all_that_a_plan_tells(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(ARTICLE) == 0
    said = capsys.readouterr().out
    order = [
        "vllm serve Qwen/Qwen2.5-72B-Instruct",
        "vLLM 0.33.0 on 8 x A10: TP 8; 2 requests of 32,768 tokens at once",
        "Memory of the tightest of 8 ranks:",
        "  [█",
        "█ weights",
        "= KV cache",
        "what clients send as `model`",
        "64 attention heads divide by 8",
        "of 22.05 GiB, 0.45 of them held before vLLM looks",
        "Considered and not taken:",
        "- TP 4: ",
        "- --enable-prefix-caching: on by itself",
        "Estimate, no promise",
        "GiB stay free at the peak",
        "trimtab lint finds nothing in this command",
    ]
    places = [said.find(part) for part in order]
    assert -1 not in places, order[places.index(-1)]
    assert places == sorted(places)


def test_every_reason_has_a_source(capsys: pytest.CaptureFixture[str]) -> None:
    run([*ARTICLE, "--json"])
    report = json.loads(capsys.readouterr().out)
    flags = {word for word in report["command"] if word.startswith("--")}
    assert {one["flag"] for one in report["why"]} == flags
    assert all(one["reason"] and one["source"] for one in (*report["why"], *report["considered"]))
    assert report["verdict"] == report["budget"]["verdict"] == "fits"
    assert report["findings"] == []


@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        (["--context", "0"], "--context is 0; it must be 1 or more", "leave --context out"),
        (["--context", "-5"], "--context is -5", "at least 1"),
        (["--concurrency", "0"], "--concurrency is 0", "at least 1"),
        (["--input", "0", "--output", "5"], "--input is 0", "at least 1"),
        (["--input", "5", "--output", "-1"], "--output is -1", "at least 1"),
        (["--nodes", "0"], "--nodes is 0", "at least 1"),
        (["--context", "abc"], "'abc' is not a valid int", "--help"),
        (["--context", "99999"], "beyond the model's 32,768", "Ask for at most 32768"),
        (["--context", "1000", "--input", "900", "--output", "200"], "make 1,100 tokens", "Raise --context"),
        (["--context", "8192", "--set", "max-model-len=4096"], "contradict each other", "Leave out one of the two"),
        (["--concurrency", "9", "--set", "max-num-seqs=4"], "contradict each other", "Leave out one of the two"),
        (["--concurrency", "100000"], "more than one step holds", "at most that many"),
        (["--prefer", "latencey"], "'latencey'", "Did you mean latency?"),
        (["--vllm", "banana"], "'banana' is not a vLLM version", "0.26"),
        (["--set", "max-num-seq=4"], "has no flag --max-num-seq", "--max-num-seqs"),
        (["--set", "max-num-seqs=x"], "does not take 'x'", "Correct the flag"),
        (["--set", "tensor-parallel-size=3"], "these do: 1, 2, 4", "without --set"),
        (["--set", "tensor-parallel-size=7"], "4 key-value heads cannot be spread evenly", "without --set"),
        (["--set", "tensor-parallel-size=2"], "need 2 GPUs; 1 are named", "without --set"),
        (["-o", "helm"], "not 'helm'", "helm-values"),
    ],
)
def test_wrong_wishes_say_what_and_what_next(
    words: list[str], said: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", QWEN, "--gpu", "A10", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err.splitlines()[0]
    assert hint in err.splitlines()[-1]


@pytest.mark.parametrize(
    ("gpu", "said"),
    [
        ("0xA10", "asks for 0 GPUs"),
        ("8xA1O", "Did you mean A10"),
        ("", "names no GPU"),
        ("H100 + MI300X", "one vLLM cannot use cards of several makers: amd, nvidia"),
        ("sm_86", "does not tell how much memory a card has"),
    ],
)
def test_cards_that_cannot_be(gpu: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", QWEN, "--gpu", gpu]) == 2
    assert said in capsys.readouterr().err


def test_mixed_cards_are_planned_as_the_smallest_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", QWEN, "--gpu", "2xH100 + 2xA10", "--json"]) == 0
    out, err = capsys.readouterr()
    assert "the smallest sets the budget" in err
    assert json.loads(out)["budget"]["gpu"]["name"] == "A10"


def test_an_unknown_model_offline_asks_for_its_config(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "acme/own-model", "--gpu", "A10"]) == 2
    assert "--model-config DIR" in capsys.readouterr().err


def test_a_misspelt_id_offline_names_what_it_may_mean(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert run(["plan", "Qwen/Qwn3-8B", "--gpu", "A10"]) == 2
    said = capsys.readouterr().err
    assert "cannot reach http://127.0.0.1:9" in said
    assert "alike: Qwen/Qwen3-8B" in said
    assert "--model-config DIR" in said


@pytest.mark.parametrize("share", ["0", "-0.5", "1.5"])
def test_a_share_of_the_card_that_cannot_be(share: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", QWEN, "--gpu", "A10", "--set", f"gpu-memory-utilization={share}"]) == 2
    assert "shares above 0, up to 1" in capsys.readouterr().err


def test_sets_of_cards_say_for_which_context(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "Qwen/Qwen3-8B", "--gpu", "any"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert "tokens a request" in rows[0]
    assert next(row for row in rows if row.startswith("1 x RTX 4090 ")).split()[7:9] == ["8,192", "4.9"]
    assert next(row for row in rows if row.startswith("1 x H200 ")).split()[6] == "40,960"


def test_a_typo_in_the_model_s_name_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "Qwen/Qwen2.5-7B-Instuct", "--gpu", "A10"]) == 0
    assert "the nearest name there is Qwen/Qwen2.5-7B-Instruct" in capsys.readouterr().err
    assert run(["plan", "Qwen/Qwen9-7B-Instruct", "--gpu", "A10"]) == 2


def test_a_vllm_that_nobody_knows_yet_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", QWEN, "--gpu", "A10", "--vllm", "9.9"]) == 0
    assert "newer than the newest known, 0.33.0" in capsys.readouterr().err


def test_what_does_not_fit_names_what_would(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*ARTICLE[:-1], "64"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("Does not fit: 64 requests of 32,768 tokens on 8 x A10.")
    assert "What would fit:" in said
    assert "at once instead of 64" in said
    assert "cost: " in said


def test_cards_that_vllm_does_not_run_on(capsys: pytest.CaptureFixture[str]) -> None:
    call = ["plan", "Qwen/Qwen2.5-72B-Instruct", "--gpu", "8xV100-32", "--context", "32768", "--concurrency", "2"]
    assert run([*call, "--vllm", "0.33"]) == 1
    said = capsys.readouterr()
    assert said.out.startswith("vLLM does not run this on 8 x V100.")
    assert "vLLM 0.19.1 instead of 0.33" in said.out
    assert run(call) == 0
    assert "vLLM 0.19.1 on 8 x V100" in capsys.readouterr().out


def test_sets_of_cards_are_ranked(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", QWEN, "--gpu", "any", "--context", "32768", "--concurrency", "16", "--json"]) == 0
    sizes = [one["total_gib"] for one in json.loads(capsys.readouterr().out)["sets"]]
    assert len(sizes) > 10
    assert [round(gib) for gib in sizes] == sorted(round(gib) for gib in sizes)
    assert run(["plan", QWEN, "--gpu", "any", "-o", "sh"]) == 2


def test_a_flag_that_the_cards_cannot_serve_is_refused_in_all_parts_of_the_report(
    capsys: pytest.CaptureFixture[str],
) -> None:
    call = ["plan", "Qwen/Qwen2.5-1.5B-Instruct", "--gpu", "T4", "--context", "2048", "--set", "dtype=bfloat16"]
    assert run([*call, "--json"]) == 1
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert (report["fits"], report["verdict"]) == (False, "unsupported")
    assert "CMD201" in report["reasons"][0]
    assert "CMD201" in err


def test_short_names_of_flags_are_taken(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", QWEN, "--gpu", "2xL40S", "--set", "tp=2"]) == 0
    assert "--tensor-parallel-size 2" in capsys.readouterr().out


def test_a_name_of_the_users_own_is_the_only_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", QWEN, "--gpu", "H200", "--set", "served-model-name=m n"]) == 0
    told = capsys.readouterr().out
    assert "--served-model-name m n \\" in told
    assert told.count("--served-model-name") == 2  # the command's and its reason
