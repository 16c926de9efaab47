"""The journal: appended, and readable after a crash tore its last line."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from trimtab.messages import msg
from trimtab.supervisor.journal import Journal, read_journal


def test_entries_come_back_in_order(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append("state", state="starting", previous="installing", reason="began")
    journal.append("log", data={"kind": "kv_tokens", "kv_tokens": 5.0})
    journal.close()
    first, second = read_journal(tmp_path)
    assert (first.state, first.previous, first.reason) == ("starting", "installing", "began")
    assert second.data["kv_tokens"] == 5.0
    assert first.at <= second.at


def test_a_torn_last_line_is_left_out_and_does_not_spoil_the_next(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append("state", state="starting")
    journal.append("state", state="loading")
    journal.close()
    journal.path.write_bytes(journal.path.read_bytes()[:-9])
    assert [entry.state for entry in read_journal(tmp_path)] == ["starting"]
    again = Journal(tmp_path)
    again.append("state", state="crashed")
    again.close()
    assert [entry.state for entry in read_journal(tmp_path)] == ["starting", "crashed"]


def test_what_the_disk_refuses_waits_in_order(tmp_path: Path) -> None:
    """Whatever the refusal is: here the bound on a file's size, as a read-only or broken disk would."""
    journal = Journal(tmp_path)
    journal.append("state", state="starting")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (journal.path.stat().st_size + 7, before[1]))
    try:
        journal.append("state", state="loading")
        journal.append("state", state="ready")
        assert journal.is_behind
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    journal.catch_up()
    assert not journal.is_behind
    journal.close()
    assert [entry.state for entry in read_journal(tmp_path)] == ["starting", "loading", "ready"]


def test_bytes_that_are_no_text_are_left_out(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append("state", state="starting")
    journal.close()
    with journal.path.open("ab") as file:
        file.write(b"\0\0\0\xff\n")
    assert [entry.state for entry in read_journal(tmp_path)] == ["starting"]


def test_no_journal_is_an_empty_one(tmp_path: Path) -> None:
    assert list(read_journal(tmp_path)) == []


def test_a_full_disk_delays_entries_and_loses_none(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append("state", state="starting")
    real, full = journal._fd, os.open("/dev/full", os.O_WRONLY)
    journal._fd = full
    journal.append("state", state="loading")
    journal.append("state", state="ready")
    assert journal.is_behind
    assert [entry.state for entry in read_journal(tmp_path)] == ["starting"]
    journal._fd = real
    journal.catch_up()
    assert not journal.is_behind
    assert [entry.state for entry in read_journal(tmp_path)] == ["starting", "loading", "ready"]
    journal.close()
    os.close(full)


def test_a_reason_is_kept_in_english_and_for_readers_of_other_languages(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    cause = msg("{n} GiB are missing", zh="缺少 {n} GiB", n=3)
    journal.append("diagnosis", reason=msg("given up: {cause}", zh="已放弃：{cause}", cause=cause))
    journal.append("diagnosis", reason="{as it was told before}")
    journal.close()
    new, old = read_journal(tmp_path)
    assert (new.reason, new.said.text("zh")) == ("given up: 3 GiB are missing", "已放弃：缺少 3 GiB")
    assert (old.reason, old.said.text("zh")) == ("{as it was told before}", "{as it was told before}")
