"""`trimtab compare` as it is typed: two servers, one before and after, pages, Ctrl-C."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench.interrupted import interrupted
from tests.fakes.openai_server import Knobs, serving
from trimtab.cli.main import run


def prompts(tmp_path: Path, count: int = 6, **more: object) -> str:
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(json.dumps({"prompt": f"Question {at}", **more}) + "\n" for at in range(count)))
    return str(path)


def test_two_servers_are_told_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page, evil = tmp_path / "page.html", "<img src=x onerror=alert(1)>"
    with serving(Knobs(key="sk-very-secret-1")) as one, serving(Knobs(answer=(evil, " friend"))) as other:
        words = ["compare", "--a", one.base_url, "--b", other.base_url, prompts(tmp_path), "--html", str(page)]
        words += ["--key-a", "sk-very-secret-1", "--price-a", "0.1,0.2"]
        monkeypatch.setattr("sys.argv", ["trimtab", *words])
        assert run(words) == 0
    told, text = capsys.readouterr().out, page.read_text()
    assert "over 6 pairs" in told or "noise of 6 pairs" in told
    assert "A: cost 0.0000" in told
    assert "<img" not in text
    assert "&lt;" in text
    assert text.count("<svg") == 3
    assert "<mark>" in text
    assert "sk-very-secret-1" not in text


def test_one_server_before_and_after(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = tmp_path / "before.json"
    with serving(Knobs(key="sk-secret-secret")) as fake:
        words = ["compare", "--key", "sk-secret-secret", "--json"]
        assert run([*words, "--a", fake.base_url, prompts(tmp_path)]) == 0
        before.write_text(capsys.readouterr().out)
        assert "sk-secret" not in before.read_text()
        assert run([*words, "--a", str(before), "--b", fake.base_url]) == 0
        both = json.loads(capsys.readouterr().out)
        assert both["schema"] == "trimtab.compare/1"
        assert both["figures"]["pairs"] == 6
        assert run([*words, "--a", str(before), "--b", fake.base_url, prompts(tmp_path, 3)]) == 2
        assert "other prompts" in capsys.readouterr().err


def test_a_file_of_two_sides_needs_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "both.json"
    with serving() as one, serving() as other:
        run(["compare", "--a", one.base_url, "--b", other.base_url, prompts(tmp_path), "--json"])
        saved.write_text(capsys.readouterr().out)
        assert run(["compare", "--a", str(saved), "--b", one.base_url]) == 2
        assert "two sides" in capsys.readouterr().err
        assert run(["compare", "--a", f"{saved},b", "--b", f"{saved},a", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["figures"]["pairs"] == 6


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--a names no back end"),
        (["--a", "nowhere.json"], "neither a URL nor a file"),
        (["--a", "http://127.0.0.1:9", "--price-a", "free"], "no price"),
        (["--a", "http://127.0.0.1:9", "missing.jsonl"], "cannot read the prompts"),
    ],
)
def test_what_is_typed_wrong_is_said(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_file_that_is_no_run_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("{}", "no", '{"schema": "trimtab.bench/1"}'):
        (tmp_path / "x.json").write_text(text)
        assert run(["compare", "--a", str(tmp_path / "x.json")]) == 2
        assert "holds no run" in capsys.readouterr().err


def test_a_failed_check_is_1(tmp_path: Path) -> None:
    with serving() as fake:
        assert run(["compare", "--a", fake.base_url, prompts(tmp_path, regex="never")]) == 1
        assert run(["compare", "--a", fake.base_url, prompts(tmp_path, regex="friend")]) == 0


def test_of_few_pairs_nothing_is_concluded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as one, serving() as other:
        assert run(["compare", "--a", one.base_url, "--b", other.base_url, prompts(tmp_path, 2)]) == 0
    assert "2 pairs are too few to tell B from A: 5 are needed" in capsys.readouterr().out


def test_ctrl_c_keeps_what_was_answered_and_marks_it(tmp_path: Path) -> None:
    with serving() as one, serving() as other:
        words = ["compare", "--a", one.base_url, "--b", other.base_url, prompts(tmp_path), "--repeats", "900", "--json"]
        found = json.loads(interrupted(words, other, 20))
    assert found["interrupted"] is True
    assert 10 < found["figures"]["pairs"] < 900
