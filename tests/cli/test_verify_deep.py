"""`trimtab verify` in depth as a user runs it: choice, budget, baseline, page, interruption, clock steps."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_verify import answering, command, environment, page, verify
from tests.fakes.openai_server import Knobs, serving

FEW = ("--only", "one_request,usage,needle,ramp,no_oom", "--concurrency", "2")


def test_chosen_criteria_are_judged_in_their_order_and_a_baseline_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "base.json"
    with serving(Knobs(recalls=99)) as fake:
        first = verify(fake.base_url, *FEW, "--save", str(file), "--json")
        again = verify(fake.base_url, *FEW, "--against", str(file))
    assert first.returncode == 0, first.stdout
    report = json.loads(file.read_text())
    assert report == json.loads(first.stdout)
    assert [c["name"] for c in report["criteria"]] == ["one_request", "usage", "needle", "ramp", "no_oom"]
    assert {f["name"] for c in report["criteria"] for f in c["figures"]} >= {"rate at 1", "rate at 2", "recall"}
    assert "against the baseline: 0 worse" in again.stdout
    assert again.returncode == 0, again.stdout


def test_what_got_worse_is_said_and_exits_with_1(tmp_path: Path) -> None:
    file = tmp_path / "base.json"
    words = ("--only", "needle,ramp", "--concurrency", "1", "--bound", "recall=0")
    with serving() as fake:
        assert verify(fake.base_url, *words, "--save", str(file)).returncode == 0
    report = json.loads(file.read_text())
    for criterion in report["criteria"]:
        for figure in criterion["figures"]:
            if figure["name"] == "rate at 1":
                figure |= {"value": 9000.0, "low": 8000.0, "high": 9900.0}
    file.write_text(json.dumps(report))
    with serving(Knobs(recalls=99)) as fake:
        done = verify(fake.base_url, *words, "--against", str(file))
        told = verify(fake.base_url, *words, "--against", str(file), "--json")
    assert done.returncode == told.returncode == 1
    assert "ramp: rate at 1 got worse" in done.stdout
    assert "was 9,000 tokens/s (8,000 to 9,900)" in done.stdout
    against = json.loads(told.stdout)["against"]
    assert against["worse"] == 1
    assert {c["outcome"] for c in against["changes"]} == {"same", "worse"}


def test_another_model_than_the_baseline_s_is_said(tmp_path: Path) -> None:
    file = tmp_path / "base.json"
    with serving() as fake:
        verify(fake.base_url, "--only", "one_request", "--save", str(file))
    with serving(Knobs(models=("other",))) as fake:
        done = verify(fake.base_url, "--only", "one_request", "--against", str(file))
    assert "the baseline is of another model: demo, not other" in done.stdout


def test_one_page_holds_verdicts_steps_and_pictures(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    with serving(Knobs(recalls=1)) as fake:
        done = verify(fake.base_url, *FEW, "--html", str(file), TRIMTAB_LANG="en")
    text = file.read_text()
    assert done.returncode == 1
    assert "recall 1 of 5, bound 80%" in text
    assert "Next: " in text
    assert text.count("<svg") == 2
    assert "http://www.w3.org" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "").replace(
        'xmlns:xlink="http://www.w3.org/1999/xlink"', ""
    )
    assert "<script" not in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "nedle"], "'nedle' is no criterion"),
        (["--depth", "deep"], "'deep' is no depth"),
        (["--bound", "itl=fast"], "'itl=fast' is no bound"),
        (["--bound", "recall=2"], "'recall=2' is no bound"),
        (["--bound", "nan=1"], "is no bound"),
        (["--bound", "itl=nan"], "is no bound"),
        (["--against", "/nonexistent/base.json"], "cannot read the baseline"),
        (["--save", "/nonexistent/dir/base.json"], "cannot write"),
        (["--html", "/nonexistent/dir/page.html"], "cannot write"),
        (["--budget", "0"], "--budget"),
        (["--needle-share", "1.5"], "--needle-share"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_the_server_is_asked(words: list[str], said: str) -> None:
    with serving() as fake:
        done = verify(fake.base_url, *words)
        assert fake.seen.bodies == []
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_no_baseline_is_named(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text("{}")
    with serving() as fake:
        done = verify(fake.base_url, "--against", str(file))
    assert done.returncode == 2
    assert "is no saved verification" in done.stderr


def test_a_time_budget_ends_it_and_says_what_is_not_measured() -> None:
    with serving() as fake:
        done = verify(fake.base_url, "--depth", "full", "--budget", "0.05")
    assert done.returncode == 1
    assert "time budget" in done.stdout
    assert "no_oom: passed" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_keeps_what_was_judged_and_marks_it(tmp_path: Path, number: signal.Signals) -> None:
    saved, html = tmp_path / "base.json", tmp_path / "page.html"
    with serving(Knobs(hang_streams=True)) as fake:
        words = ("--only", "one_request,ramp,no_oom", "--save", str(saved), "--html", str(html), "--json")
        child = subprocess.Popen(
            command(fake.base_url, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
        )
        assert fake.seen.streaming.wait(30)
        child.send_signal(number)
        out, err = child.communicate(timeout=20)
        assert fake.seen.left.wait(10)
    assert child.returncode == 130, err
    report = json.loads(out)
    assert report["interrupted"] is True
    assert report["passed"] is None
    assert {c["name"]: c["verdict"] for c in report["criteria"]} == {
        "one_request": "passed", "ramp": "not_measured", "no_oom": "not_measured",
    }  # fmt: skip
    assert json.loads(saved.read_text())["interrupted"] is True
    assert "interrupted" in html.read_text()
    assert "Traceback" not in err


STEPPING = """
import itertools, sys, time
steps = itertools.cycle((0.0, 3600.0, -86400.0))
real = time.time
time.time = lambda: real() + next(steps)
from trimtab.__main__ import main
sys.argv = ["trimtab", *sys.argv[1:]]
main()
"""


def test_a_clock_that_steps_changes_no_time() -> None:
    with serving() as fake:
        words = ["verify", fake.base_url, *FEW, "--json"]
        done = subprocess.run(
            [sys.executable, "-c", STEPPING, *words], capture_output=True, text=True, check=False, env=environment()
        )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert 0 < report["seconds"] < 60
    assert all(0 <= c["seconds"] < 60 for c in report["criteria"])


def test_the_memory_of_a_server_on_this_host_is_seen() -> None:
    with serving() as fake:
        words = ("--only", "memory", "--memory-minutes", "0.05", "--json")
        report = json.loads(verify(fake.base_url, *words).stdout)
    assert report["criteria"][0]["measured"]["host_mib"] > 10
    assert report["passed"] is True


def test_half_dead_servers_end_in_time() -> None:
    with answering(page(b'{"data": [{"id": "demo"}]}')) as url:  # every path answers with the model list
        done = verify(url, "--depth", "full", "--budget", "0.2")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", pause_s=30) as url:
        stuck = verify(url, "--depth", "full", "--timeout", "1", "--budget", "0.2")
    assert stuck.returncode == 2
    assert "no whole answer" in stuck.stderr
