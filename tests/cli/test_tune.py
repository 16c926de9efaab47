"""`trimtab tune` as a process over a stand-in whose speed follows its flags: what it finds, and what goes wrong."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from socket import socket
from typing import Any

import pytest

from tests.cli.test_up import clear, environment, left_over, record, running
from tests.fakes import vllm_install
from tests.supervisor.fake import wait_for

LOAD = ("--context", "256", "--concurrency", "8", "--input", "20", "--output", "4", "--rounds", "2", "--round", "1")
TRIED = ("--try", "max-num-seqs=1,2,8")
TIMEOUT_S = 120


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return vllm_install.tuned(vllm_install.make(tmp_path_factory.mktemp("tuned") / "venv"))


@pytest.fixture
def where(home: Path, model: Path, python: Path, tmp_path: Path) -> Where:
    return Where(home, model, python, tmp_path)


class Where:
    """A place to tune in: `words` begins every command, and ends in one journal."""

    def __init__(self, home: Path, model: Path, python: Path, directory: Path) -> None:
        self.home, self.model, self.directory = home, model, directory
        self.journal = directory / "trials.jsonl"
        self.plan = directory / "out.json"
        self.words = [str(model), "--engine-python", str(python), "--journal", str(self.journal), "-o", str(self.plan)]

    def command(self, *more: str) -> list[str]:
        return [sys.executable, "-m", "trimtab", "tune", *self.words, *more]

    def env(self, fault: dict[str, Any] | None) -> dict[str, str]:
        return {**environment(self.home), "TUNED_ENGINE": json.dumps(fault or {})}

    def tune(self, *more: str, fault: dict[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*more), env=self.env(fault), cwd=self.directory, capture_output=True, text=True,
            timeout=TIMEOUT_S, check=False,
        )  # fmt: skip

    def trials(self) -> list[dict[str, Any]]:
        lines = self.journal.read_bytes().splitlines()
        return [json.loads(line)["trial"] for line in lines[1:]]


def test_throughput_rises_with_what_runs_at_once(where: Where) -> None:
    page = where.directory / "page.html"
    done = where.tune(*LOAD, "--try", "max-num-seqs=8,16", "--try", "max-num-batched-tokens=1024", "--json",
                      "--html", str(page))  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["schema"], found["ending"]) == ("trimtab.tune/1", "settled")
    assert found["starts"] < found["grid"]
    plan = json.loads(where.plan.read_text())
    assert plan["schema"] == "trimtab.plan/1"
    assert plan["command"] == found["command"]
    assert "<svg" in page.read_text()
    assert left_over(where.home) == []
    with running(where.home, str(where.plan), "--no-verify", "--engine-python", where.words[2]):
        wait_for(lambda: record(where.home, "ready"))
    skipped = [one for one in found["trials"] if one["kind"] == "skipped"]
    assert any("never has more than 8 requests" in one["verdict"] for one in skipped)


def test_more_at_once_is_found_and_kept_with_its_reason(where: Where) -> None:
    """The plan's 8 are pinned to nothing: from 1 upwards each step gains, and the reason says by how much."""
    done = where.tune(*LOAD, "--objective", "goodput", "--target", "e2e=400", "--try", "max-num-seqs=1,8")
    assert done.returncode == 0, done.stderr
    assert "--max-num-seqs 8 -> 1" in done.stdout
    assert "dropped:" in done.stdout
    assert "of the requests keep the target" in done.stdout
    trial = where.trials()[0]
    assert trial["forecast"]["verdict"] == "fits"
    assert trial["rounds"][0]["good_share"] > 0.9


def test_the_same_arguments_go_on_and_others_are_refused(where: Where) -> None:
    first = where.tune(*LOAD, *TRIED)
    assert first.returncode == 0, first.stderr
    known = where.trials()
    again = where.tune(*LOAD, *TRIED)
    assert again.returncode == 0, again.stderr
    assert where.trials() == known  # nothing was started
    assert again.stdout == first.stdout
    other = where.tune(*LOAD, *TRIED, "--seed", "5")
    assert other.returncode == 2
    clear(other, "other arguments: seed was 0, now 5")


def test_a_torn_line_is_no_trial(where: Where) -> None:
    assert where.tune(*LOAD, *TRIED).returncode == 0
    whole = where.journal.read_bytes()
    known = where.trials()
    last = whole.rstrip(b"\n").rfind(b"\n")
    where.journal.write_bytes(whole[: last + 40])
    done = where.tune(*LOAD, *TRIED)
    assert done.returncode == 0, done.stderr
    lines = where.journal.read_bytes().splitlines()
    assert lines[-2] == whole[last + 1 : last + 40]  # alone on its line
    assert [one["number"] for one in [json.loads(lines[-1])["trial"]]] == [known[-1]["number"]]


def test_an_engine_that_dies_in_a_trial_is_diagnosed_and_the_search_goes_on(where: Where) -> None:
    tried = ("--objective", "latency", "--try", "max-num-seqs=4,8", "--try", "max-num-batched-tokens=1024")
    done = where.tune(*LOAD, *tried, "--json", fault={"dies_at": {"max-num-seqs": "4"}})
    assert done.returncode == 0, done.stderr
    trials = json.loads(done.stdout)["trials"]
    died = [one for one in trials if one["kind"] == "failed"]
    assert [one["after"] for one in died] == ["4"]
    assert "memory" in died[0]["cause"]
    assert any(one["flag"] == "max-num-batched-tokens" for one in trials)
    assert left_over(where.home) == []


def test_an_engine_that_dies_under_load_is_dropped_with_its_cause(where: Where) -> None:
    tried = ("--objective", "latency", "--try", "max-num-seqs=4,8")
    done = where.tune(*LOAD, *tried, "--json", fault={"dies_serving": {"max-num-seqs": "4"}})
    assert done.returncode == 0, done.stderr
    died = [one for one in json.loads(done.stdout)["trials"] if one["kind"] == "failed"]
    assert [one["after"] for one in died] == ["4"]
    assert "memory" in died[0]["cause"]


def test_a_plan_that_dies_ends_it_with_its_cause(where: Where) -> None:
    done = where.tune(*LOAD, *TRIED, fault={"dies_at": {}})
    assert done.returncode == 1
    clear(done, "the plan itself could not be measured", "memory")
    assert not where.plan.exists()


def test_empty_answers_are_no_verified_server(where: Where) -> None:
    done = where.tune(*LOAD, *TRIED, fault={"mute": True})
    assert done.returncode == 1
    clear(done, "not verified, one request", "empty")


def test_a_target_that_cannot_be_met_is_said(where: Where) -> None:
    done = where.tune(*LOAD, "--objective", "goodput", "--target", "ttft=0.5,itl=1", "--try", "max-num-seqs=4,8")
    assert done.returncode == 1
    assert "the target is not met" in done.stdout
    assert where.plan.exists()


def test_ctrl_c_in_a_trial_leaves_no_process_and_the_journal(where: Where) -> None:
    child = subprocess.Popen(
        where.command(*LOAD, *TRIED), env=where.env({"start_s": 30}), cwd=where.directory, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        wait_for(lambda: len(left_over(where.home)) > 2)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=TIMEOUT_S)
    finally:
        child.kill()
    assert child.returncode == 130, err
    assert left_over(where.home) == []
    assert [one["kind"] for one in where.trials()] == ["cut"]
    assert "interrupted; the same command goes on" in out
    done = where.tune(*LOAD, *TRIED)
    assert done.returncode == 0, done.stderr
    assert [one["kind"] for one in where.trials()][:2] == ["cut", "measured"]


def test_the_budget_ends_a_trial_that_does_not(where: Where) -> None:
    done = where.tune(*LOAD, *TRIED, "--budget", "0.15", fault={"start_s": 60})
    assert done.returncode == 1, done.stderr
    assert "the budget is used up" in done.stdout
    assert [one["kind"] for one in where.trials()] == ["cut"]
    assert left_over(where.home) == []


def test_a_port_that_is_taken_is_refused_before_anything(where: Where) -> None:
    with socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = where.tune(*LOAD, *TRIED, "--port", str(taken.getsockname()[1]))
    assert done.returncode == 2
    clear(done, "port", str(taken.getsockname()[1]) if taken.fileno() > 0 else "port")
    assert not where.journal.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--budget", "0.01", *LOAD), "holds no trial"),
        (("--objective", "speed", *LOAD), "--objective does not take"),
        (("--objective", "goodput", *LOAD), "--objective goodput needs a target"),
        (("--target", "ttft=1", *LOAD), "--target is for --objective goodput"),
        (("--objective", "goodput", "--target", "ttft=soon", *LOAD), "'ttft=soon' is no target"),
        (("--try", "max-num-seq=4", *LOAD), "has no flag"),
        (("--try", "max-num-seqs", *LOAD), "names no values to try"),
        (("--try", "max-num-seqs=4,9", "--pin", "max-num-seqs", *LOAD), "is pinned, and --try names it"),
        (("--pin", "max-nmu-seqs", *LOAD), "which no vLLM known here has"),
        (("--concurrency", "100000", "--context", "8192"), "requests at once"),
        (("--concurrency", "2", "--context", "8192", "--input", "9000", "--output", "5"), "more than the context"),
    ],
)
def test_words_that_cannot_be_done_are_one_clear_error(where: Where, words: tuple[str, ...], said: str) -> None:
    done = where.tune(*words)
    assert done.returncode == 2
    clear(done, said)
    assert not where.journal.exists()


def test_a_model_that_does_not_fit_is_one_clear_error(where: Where) -> None:
    config = json.loads((where.model / "config.json").read_text())
    (where.model / "config.json").write_text(json.dumps({**config, "hidden_size": 65536, "num_hidden_layers": 200}))
    done = where.tune(*LOAD, *TRIED)
    assert done.returncode == 2
    clear(done, "does not fit")
    assert not where.journal.exists()


def test_a_command_file_is_no_model(where: Where) -> None:
    script = where.directory / "run.sh"
    script.write_text("vllm serve some/model\n")
    done = subprocess.run([sys.executable, "-m", "trimtab", "tune", str(script)], env=where.env(None),
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 2
    clear(done, "is no model: tune begins with a plan")


def test_a_journal_on_a_full_disk_ends_it_with_one_error(where: Where) -> None:
    where.words[where.words.index("--journal") + 1] = "/dev/full"
    done = where.tune(*LOAD, *TRIED)
    assert done.returncode == 2
    clear(done, "cannot write the trials to /dev/full", "No space left")
    assert left_over(where.home) == []


def test_another_file_is_no_journal(where: Where) -> None:
    where.journal.write_text("hello\n")
    done = where.tune(*LOAD, *TRIED)
    assert done.returncode == 2
    clear(done, "is no journal of a tuning")
    assert where.journal.read_text() == "hello\n"
