"""The engine's log: bounded, cut between lines, followed over the cut, and never in the engine's way."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.supervisor.fake import Run, spec, wait_for
from trimtab.errors import HostError
from trimtab.supervisor.logfile import follow, tail
from trimtab.supervisor.rotation import RotatingLog, aside
from trimtab.supervisor.states import State


def begun(file: Path, most_bytes: int, files: int) -> RotatingLog:
    log = RotatingLog(file, most_bytes, files)
    log.begin()
    return log


def numbered(first: int, last: int) -> bytes:
    return b"".join(b"line %06d\n" % number for number in range(first, last))


def test_a_full_log_is_set_aside_between_lines(tmp_path: Path) -> None:
    file = tmp_path / "engine.log"
    log = begun(file, 1000, 3)
    whole = numbered(0, 500)
    for at in range(0, len(whole), 77):
        log.write(whole[at : at + 77])
    log.close()
    kept = [aside(file, number) for number in (2, 1, 0)]
    assert [f.exists() for f in kept] == [True, True, True]
    assert not aside(file, 3).exists()
    text = b"".join(f.read_bytes() for f in kept)
    assert whole.endswith(text)
    for part in kept:
        assert part.read_bytes().startswith(b"line ")
        assert part.stat().st_size <= 1000 + 77


def test_a_line_longer_than_a_file_is_cut(tmp_path: Path) -> None:
    file = tmp_path / "engine.log"
    log = begun(file, 1000, 10)
    for _ in range(50):
        log.write(b"x" * 100)
    log.close()
    sizes = [aside(file, number).stat().st_size for number in range(10) if aside(file, number).exists()]
    assert sum(sizes) == 5000
    assert max(sizes) <= 2100


def test_each_start_begins_a_file(tmp_path: Path) -> None:
    file = tmp_path / "engine.log"
    for number in range(4):
        log = begun(file, 1000, 3)
        log.write(b"start %d\n" % number)
        log.close()
    assert [aside(file, number).read_bytes() for number in range(3)] == [b"start 3\n", b"start 2\n", b"start 1\n"]


def test_a_log_that_is_removed_meanwhile_is_begun_anew(tmp_path: Path) -> None:
    file = tmp_path / "engine.log"
    log = begun(file, 1000, 3)
    log.write(b"lost\n")
    file.unlink()
    log.write(b"found\n")
    assert file.read_bytes() == b"found\n"
    (tmp_path / "engine.log").unlink()
    tmp_path.rename(tmp_path.with_name("gone"))
    log.write(b"nowhere\n")  # the engine goes on all the same
    log.close()


def test_a_log_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    with pytest.raises(HostError, match="cannot write the log file"):
        begun(tmp_path / "taken" / "engine.log", 1000, 3)


def test_a_log_that_cannot_be_opened_is_tried_again_at_each_write(tmp_path: Path) -> None:
    file = tmp_path / "engine.log"
    file.mkdir()
    log = RotatingLog(file, 1000, 3)
    with pytest.raises(HostError, match=r"engine\.log: Is a directory"):
        log.begin()
    log.write(b"lost\n")
    assert not log.begun
    file.rmdir()
    log.write(b"found\n")
    log.close()
    assert (log.begun, file.read_bytes()) == (True, b"found\n")


def test_following_goes_on_over_the_cut(tmp_path: Path) -> None:
    file = tmp_path / "engine.log"
    log = begun(file, 300, 50)
    log.write(numbered(0, 3))
    first, end = tail(file, 100)
    written = threading.Event()
    got = [first]

    def read() -> None:
        pauses = iter(range(10_000))
        got.extend(follow(file, end, lambda: written.is_set(), lambda: next(pauses) and threading.Event().wait(0.001)))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(3, 600):
        log.write(numbered(number, number + 1))
        if number % 20 == 0:  # never two cuts between two looks
            wait_for(lambda last=b"%06d" % number: last in b"".join(got))  # type: ignore[misc]
    written.set()
    reader.join(30)
    log.close()
    assert b"".join(got) == numbered(0, 600)


def test_an_engine_that_prints_more_than_fits_goes_on(tmp_path: Path) -> None:
    run = Run(spec(tmp_path, "--spam", "3000000", log_bytes=100_000, log_files=3))
    run.until("ready")
    outcome = run.end()
    kept = sorted(outcome.log_file.parent.glob("engine.log*"))
    assert [f.name for f in kept] == ["engine.log", "engine.log.1", "engine.log.2"]
    assert sum(f.stat().st_size for f in kept) < 3 * 100_000 + 3 * 65_536
    assert b"line    29999" in b"".join(f.read_bytes() for f in kept)


def test_a_full_disk_loses_lines_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "engine.log").symlink_to("/dev/full")
    run = Run(spec(tmp_path, "--spam", "3000000", log_file=tmp_path / "engine.log"))
    run.until("ready")
    assert run.end().state is State.STOPPED
