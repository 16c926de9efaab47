"""`trimtab report` of a server that crashed: every section, no planted secret, and nothing is written unasked."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_history import crashed
from tests.cli.test_up import clear, environment, record
from trimtab.cli.format.report import quoted, report_markdown
from trimtab.cli.private import private_of
from trimtab.engine.redaction import redact
from trimtab.messages import msg

SECRET = "S3cretValue0123456789abcdef"
NAMED = {"HF_TOKEN": f"hf_{SECRET}", "MY_DATABASE_PASSWORD": f"plain-{SECRET}", "SSH_AUTH_SOCK": "/run/agent"}
HEADINGS = ("What happened", "Before the last crash", "Diagnosis", "Command", "Versions", "Hardware", "Plan", "Memory",
            "Last events", "Last lines of the log")  # fmt: skip


def report(home: Path, *words: str, said: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trimtab", "report", *words], env={**environment(home), **NAMED}, capture_output=True,
        text=True, timeout=60, check=False, input=said,
    )  # fmt: skip


@pytest.fixture
def name(home: Path, model: Path, python: Path) -> str:
    """A crashed server whose log holds secrets."""
    found = crashed(home, model, python)
    seen = record(home, "crashed")
    assert seen is not None
    with Path(seen.log).open("a", encoding="utf-8") as log:
        log.write(f"INFO non-default args: {{'api_key': ['{SECRET}'], 'hf_token': '{SECRET}'}}\n")
        log.write(f"GET https://me:{SECRET}@hub.example.org/x Authorization: Bearer {SECRET}\n")
        log.write(f"the database says plain-{SECRET} and {seen.api_key}; home {Path.home()}/models\n")
        log.write("```\nnot the end of the block\n" + "x " * 3000 + "\n")
    return found


def test_it_holds_all_and_no_secret(home: Path, name: str) -> None:
    done = report(home, name)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    assert tuple(re.findall(r"^## (.*)$", text, re.MULTILINE)) == HEADINGS
    for part in (
        f"# Report of the server {name}", "starts 1, ended unasked 1", "the KV cache was up to 99% full", "KV full",
        "serve", "--max-num-seqs 4", "- vLLM: 0.32.0", "- CPU: ", "Considered and not taken:", "weights",
        "state  crashed",
        "Application startup complete", "not the end of the block",
    ):  # fmt: skip
        assert part in text, part
    seen = record(home, "crashed")
    assert seen is not None
    for secret in ("S3cret", seen.api_key, f"{Path.home()}/models"):
        assert secret not in text
    assert f"{text.count('***')} secrets are hidden" in done.stderr
    assert "***" not in text.partition("## ")[0]
    private = private_of((seen.api_key,), NAMED)
    assert redact(text, private) == text


def test_nothing_is_written_before_it_was_shown(home: Path, name: str, tmp_path: Path) -> None:
    out = tmp_path / "report.md"
    done = report(home, name, "-o", str(out), said="")
    assert done.returncode == 2
    clear(done, "nobody can be asked here", "--yes")
    assert not out.exists()
    done = report(home, name, "-o", str(out), "--yes", "-n", "3")
    assert (done.returncode, done.stdout) == (0, "")
    assert out.stat().st_mode & 0o777 == 0o600
    assert "## Diagnosis" in out.read_text()
    done = report(home, name, "-o", str(tmp_path / "no" / "such.md"), "--yes")
    assert done.returncode == 2
    clear(done, "cannot write", "No such file or directory")


@pytest.mark.parametrize(("answer", "written"), [(b"n\n", False), (b"\n", False), (b"y\n", True)])
def test_in_a_terminal_it_asks(home: Path, name: str, tmp_path: Path, answer: bytes, written: bool) -> None:
    out = tmp_path / "report.md"
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "trimtab", "report", name, "-o", str(out)], env=environment(home), stdin=theirs,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as child:  # fmt: skip
        os.write(ours, answer)
        shown, asked = child.communicate(timeout=60)
    os.close(theirs)
    os.close(ours)
    assert child.returncode == 0
    assert b"## Hardware" in shown
    assert b"[y/N]" in asked
    assert out.exists() is written


def test_what_cannot_be_known_is_said_and_the_rest_stays(home: Path, name: str) -> None:
    seen = record(home, "crashed")
    assert seen is not None
    Path(seen.log).unlink()
    done = report(home, name)
    assert done.returncode == 0
    assert done.stdout.count("not known: cannot read the log") == 2
    assert "## Hardware" in done.stdout


def test_wrong_words(home: Path) -> None:
    done = report(home, "nobody")
    assert done.returncode == 2
    clear(done, "there is no server named 'nobody'")
    done = report(home, "--yes")
    assert done.returncode == 2
    clear(done, "--yes writes no file")


def test_no_text_ends_its_block() -> None:
    text = report_markdown("t", "l", [quoted(msg("Plan"), "a\n````\nb")], "en")
    assert "\n`````\na\n````\nb\n`````\n" in text


def test_private_names_of_this_host() -> None:
    found = private_of(("sk-1",), {**NAMED, "HOME": "/srv/ada", "USER": "ada", "KEYBOARD": "us"})
    assert f"plain-{SECRET}" in found.secrets
    assert "/run/agent" not in found.secrets
    assert "us" not in found.secrets
    assert "/srv/ada" in found.homes
    assert "ada" in found.users
    assert found.hosts
