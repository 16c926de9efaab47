"""`trimtab up` keeps a server alive: restarts, recovery by name, one parameter stepped back; over a fake vLLM."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_up import clear, environment, left_over, record, running, up
from tests.ports import free_port
from tests.supervisor.fake import wait_for
from trimtab.cli.examination import Bound, bound_of
from trimtab.cli.keeping import Keep, recall
from trimtab.errors import UsageError
from trimtab.supervisor import registry
from trimtab.supervisor.journal import Entry, read_journal

KV = "--kv-tokens 1000"  # the engine's KV cache holds 1,000 tokens
LONG = ("--max-model-len", "4096")


def state_of(home: Path) -> Path:
    return home / "state" / "trimtab"


def entries(home: Path, name: str, what: str) -> list[Entry]:
    return [entry for entry in read_journal(registry.directory(state_of(home), name)) if entry.what == what]


def given(model: Path, python: Path, *options: str, flags: tuple[str, ...] = LONG) -> tuple[str, ...]:
    """A whole launch command after `--`: it pins nothing."""
    command = ("vllm", "serve", str(model), *flags, "--served-model-name", "mine")
    port = ("--port", str(free_port()))  # which nothing else takes between its starts
    return ("--engine-python", str(python), "--no-verify", "--name", "mine", *port, *options, "--", *command)


def stop(child: subprocess.Popen[str]) -> tuple[str, str]:
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert child.returncode == 0, err
    return out, err


def test_an_engine_that_dies_is_started_again_and_then_given_up(home: Path, model: Path, python: Path) -> None:
    words = (str(model), "--engine-python", str(python), "--no-verify", "--max-restarts", "1")
    with running(home, *words) as child:
        for restarts in (0, 1):
            seen = wait_for(lambda count=restarts: (r := record(home, "ready")) and r.restarts == count and r)  # type: ignore[misc]
            os.kill(seen.engine_pid, signal.SIGKILL)
        out, err = child.communicate(timeout=60)
    assert child.returncode == 1
    assert "backing off: starts again in 2 s (restart 1 of 1)" in err
    assert "tiny-llama was given up: ended again after 1 restarts within 60 minutes" in err
    assert out.count("OpenAI(") == 1
    assert record(home, "given_up")
    assert left_over(home) == []


def test_without_restart_the_first_crash_ends_it(home: Path, model: Path, python: Path) -> None:
    with running(home, str(model), "--engine-python", str(python), "--no-verify", "--no-restart") as child:
        os.kill(wait_for(lambda: record(home, "ready")).engine_pid, signal.SIGKILL)
        _, err = child.communicate(timeout=60)
    assert child.returncode == 1
    assert "crashed" in err
    assert record(home, "crashed")


def test_after_sigkill_of_the_supervisor_the_name_alone_starts_the_same_again(
    home: Path, model: Path, python: Path
) -> None:
    with running(home, *given(model, python, flags=("--max-model-len", "512"))) as child:
        before = wait_for(lambda: record(home, "ready"))
        child.kill()
        child.communicate()
    wait_for(lambda: left_over(home) == [])
    with running(home, "mine", "--no-verify") as child:
        after = wait_for(lambda: record(home, "ready"))
        for field in ("name", "argv", "port", "api_key", "models", "devices"):
            assert getattr(after, field) == getattr(before, field)
        assert after.pid == child.pid
        stop(child)
    assert left_over(home) == []
    ended = entries(home, "mine", "state")
    assert "died without ending it" in next(entry.reason for entry in ended if entry.state == "crashed")


def test_what_was_pinned_and_bounded_holds_for_a_later_start_by_name(
    home: Path, model: Path, python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--pin", "max-num-seqs", "--keep", "max-model-len>=256")
    with running(home, *given(model, python, *options, flags=("--max-model-len", "512"))) as child:
        wait_for(lambda: record(home, "ready"))
        stop(child)
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.chdir(tmp_path)
    found = recall("mine")
    assert found is not None
    assert found.launch.directory == Path(found.memo.cwd) != Path.cwd()  # relative paths in the command stay true
    keep = Keep(bounds=("max-model-len>=256", "dtype=half"), pins=("seed",)).with_former(found.memo)
    assert keep.bounds == ("max-model-len>=256", "dtype=half")
    assert keep.pins == ("max-num-seqs", "seed")


def test_a_server_whose_model_is_gone_is_not_started(home: Path, model: Path, python: Path) -> None:
    with running(home, *given(model, python, flags=("--max-model-len", "512"))) as child:
        wait_for(lambda: record(home, "ready"))
        stop(child)
    model.rename(model.with_name("elsewhere"))
    said = up(home, "mine", "--no-verify")
    assert said.returncode == 2
    clear(said, f"mine served {model}, which is gone", "trimtab up MODEL --name mine")


def test_a_running_server_is_not_started_twice(home: Path, model: Path, python: Path) -> None:
    with running(home, *given(model, python, flags=("--max-model-len", "512"))) as child:
        wait_for(lambda: record(home, "ready"))
        again = up(home, "mine")
        assert again.returncode == 2
        assert "a server named mine is running" in again.stderr
        stop(child)


def test_self_heal_changes_the_one_flag_that_the_diagnosis_names(home: Path, model: Path, python: Path) -> None:
    with running(home, *given(model, python, "--self-heal"), knobs=KV) as child:
        seen = wait_for(lambda: record(home, "ready"))
        assert seen.argv[seen.argv.index("--max-model-len") + 1] == "992"
        _, err = stop(child)
    assert "stepping back: --max-model-len 4096 -> 992: one request of 4096 tokens needs 16.0 GiB" in err
    (step,) = entries(home, "mine", "step")
    assert (step.data["flag"], step.data["before"], step.data["after"]) == ("max-model-len", "4096", "992")
    (found,) = entries(home, "mine", "diagnosis")
    assert found.data["cause"] == "kv-too-small-for-context"
    states = [entry.state for entry in entries(home, "mine", "state")]
    assert states.count("stepping_back") == 1
    assert "failed_to_start" in states
    assert left_over(home) == []


def test_the_changed_launch_is_verified_as_it_is(home: Path, model: Path, python: Path) -> None:
    words = [word for word in given(model, python, "--self-heal") if word != "--no-verify"]
    with running(home, *words, knobs=KV) as child:
        wait_for(lambda: entries(home, "mine", "serving"))
        out, _ = stop(child)
    assert "long_context" in out
    assert "4096" not in out  # the context that it was started with at first


def test_a_changed_parameter_is_kept_by_the_next_start_by_name(
    home: Path, model: Path, python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(home, *given(model, python, "--self-heal"), knobs=KV) as child:
        wait_for(lambda: record(home, "ready"))
        stop(child)
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    found = recall("mine")
    assert found is not None
    assert found.launch.command.get("max-model-len") == "992"
    assert found.launch.argv == found.memo.argv[: len(found.launch.argv)][:3] + found.launch.argv[3:]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--self-heal=suggest",), "self-heal: --max-model-len 4096 -> 992: one request of 4096 tokens"),
        (
            ("--self-heal", "--keep", "max-model-len>=2048"),
            "self-heal: --max-model-len 992 would help, but max-model-len>=2048 is to be kept",
        ),
        (("--self-heal", "--pin", "--max_model_len"), "would help, but the flag is pinned"),
        (("--self-heal", "--context", "4096"), "would help, but max-model-len>=4096 is to be kept"),
        ((), "the engine ended with exit code 1: one request of 4096 tokens needs 16.0 GiB"),
    ],
    ids=["suggest", "keep", "pin", "context", "off"],
)
def test_what_is_not_changed(home: Path, model: Path, python: Path, options: tuple[str, ...], said: str) -> None:
    done = up(home, *given(model, python, *options), knobs=KV)
    assert done.returncode == 1
    assert said in done.stderr
    assert entries(home, "mine", "step") == []
    assert record(home, "failed_to_start")
    assert left_over(home) == []


def test_flags_after_the_model_are_pinned(home: Path, model: Path, python: Path) -> None:
    words = (str(model), "--engine-python", str(python), "--no-verify", "--self-heal", "--", *LONG)
    done = up(home, *words, knobs=KV)
    assert done.returncode == 1
    assert "would help, but the flag is pinned" in done.stderr


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("--self-heal=always",), ("--self-heal takes off, suggest, on, not 'always'",)),
        (("--self-heal", "--keep", "max-model-len"), ("--keep takes a flag", "--keep 'max-model-len>=32768'")),
        (("--self-heal", "--keep", "max-model-len>=much"), ("--max-model-len does not take 'much'",)),
    ],
)
def test_words_that_cannot_be(
    home: Path, model: Path, python: Path, words: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    done = up(home, *given(model, python, *words))
    assert (done.returncode, done.stdout) == (2, "")
    clear(done, *parts)


def test_bounds() -> None:
    assert bound_of("--max_model_len >= 32k") == Bound("max-model-len", ">=", "32k")
    for text, value, holds in (
        ("max-model-len>=32k", "32000", True),
        ("max-model-len>=32K", "32000", False),
        ("gpu-memory-utilization<=0.9", "0.92", False),
        ("gpu-memory-utilization<=0.9", "0.9", True),
        ("dtype=half", "half", True),
        ("dtype=half", "float", False),
        ("max-num-seqs>=8", None, False),
        ("max-num-seqs>=8", "many", False),
    ):
        assert bound_of(text).holds(value) is holds
    for text in ("", "max-model-len", ">=3", "max-model-len>3"):
        with pytest.raises(UsageError):
            bound_of(text)


def test_nothing_to_recall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name in ("unknown", "owner/model", "../x", ""):
        assert recall(name) is None


def test_logs_follow_goes_on_over_a_restart(home: Path, model: Path, python: Path) -> None:
    with running(home, *given(model, python, flags=("--max-model-len", "512"))) as child:
        seen = wait_for(lambda: record(home, "ready"))
        follower = subprocess.Popen(
            [sys.executable, "-m", "trimtab", "logs", "-f", "mine"], env=environment(home), stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        os.kill(seen.engine_pid, signal.SIGKILL)
        wait_for(lambda: (r := record(home, "ready")) and r.restarts == 1)
        stop(child)
        out, _ = follower.communicate(timeout=30)
    assert follower.returncode == 0
    assert out.count("Application startup complete") == 2


def test_a_record_or_a_launch_of_another_version_is_said(home: Path, model: Path, python: Path) -> None:
    with running(home, *given(model, python)) as child:
        wait_for(lambda: record(home, "ready"))
        stop(child)
    server = registry.directory(state_of(home), "mine")
    whole = (server / "server.json").read_text()
    (server / "server.json").write_text(whole.replace('"pid"', '"process"'))
    done = up(home, "mine")
    assert done.returncode == 2
    clear(done, "the record of the server mine is of another version of Trimtab: Object missing required field `pid`")
    (server / "server.json").write_text(whole)
    journal = (server / "journal.jsonl").read_text()
    for cut in (journal[:200], ""):
        (server / "journal.jsonl").write_text(cut)
        done = up(home, "mine")
        assert done.returncode == 2
        clear(done, "the journal of mine tells no launch that could be started again", "trimtab up MODEL --name mine")
    (server / "journal.jsonl").write_text(journal.replace('"program"', '"words"'))
    done = up(home, "mine")
    assert done.returncode == 2
    clear(done, "the last launch of mine cannot be read here: Object missing required field `program`")


def test_the_engine_is_told_how_long_requests_may_run_at_its_end(
    home: Path, model: Path, python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words, flag in (((), "25"), (("--drain", "7.5"), "8"), ((), "25")):
        subject = ("mine",) if home.exists() else given(model, python)
        with running(home, *words, *subject) as child:
            seen = wait_for(lambda: record(home, "ready"))
            stop(child)
        assert seen.argv.count("--shutdown-timeout") == 1
        assert seen.argv[seen.argv.index("--shutdown-timeout") + 1] == flag
    with running(home, *given(model, python, flags=("--shutdown-timeout", "3"))) as child:
        seen = wait_for(lambda: record(home, "ready"))
        stop(child)
    assert seen.argv.count("--shutdown-timeout") == 1
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    found = recall("mine")
    assert found is not None
    assert found.launch.command.get("shutdown-timeout") == "3"


def test_a_terminal_that_is_gone_ends_no_server(home: Path, model: Path, python: Path) -> None:
    with running(home, *given(model, python)) as child:
        first = wait_for(lambda: record(home, "ready"))
        assert child.stderr is not None
        while "serving" not in child.stderr.readline():
            continue
        child.stderr.close()
        os.kill(first.engine_pid, signal.SIGKILL)
        second = wait_for(lambda: (r := record(home, "ready")) and r.restarts == 1 and r)
        child.send_signal(signal.SIGINT)
        child.wait(30)
    assert second.pid == first.pid
    assert left_over(home) == []
