"""`trimtab bench` as it is typed: report, rows and page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes.openai_server import Knobs, serving
from trimtab.cli.main import run

WORDS = ["--requests", "12", "--concurrency", "4", "--input", "40", "--output", "5"]


def bench(knobs: Knobs, *more: str) -> int:
    with serving(knobs) as fake:
        return run(["bench", fake.base_url, *WORDS, *more])


def test_the_page_holds_figures_pictures_and_the_command_without_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    monkeypatch.setattr("sys.argv", ["trimtab", "bench", "URL", "--key", "sk-very-secret-1", "--html", "page.html"])
    assert bench(Knobs(key="sk-very-secret-1"), "--key", "sk-very-secret-1", "--html", str(page), "--json") == 0
    text = page.read_text()
    assert text.count("<svg") == 7  # four latencies, tokens, requests, KV cache
    assert "trimtab bench URL --key *** --html page.html" in text
    assert "sk-very-secret-1" not in text
    assert "12 answers" in text
    assert json.loads(capsys.readouterr().out)["finished"] == 12


def test_what_failed_is_on_the_page_by_kind(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert bench(Knobs(cut_streams=True), "--html", str(page)) == 1
    assert "stream cut" in page.read_text()
    assert "nothing to draw" in page.read_text()


def test_a_name_of_a_model_cannot_run_on_the_page(tmp_path: Path) -> None:
    page, evil = tmp_path / "page.html", "<script>alert(1)</script>"
    assert bench(Knobs(models=(evil,), metrics=False), "--html", str(page), "--lang", "zh") == 0
    assert "<script" not in page.read_text()
    assert 'lang="zh-CN"' in page.read_text()


def test_a_page_that_cannot_be_written_is_told_before_anything_is_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(Knobs()) as fake:
        assert run(["bench", fake.base_url, *WORDS, "--html", str(tmp_path / "no" / "page.html")]) == 2
        assert fake.seen.bodies == []
    assert "no directory that may be written" in capsys.readouterr().err
