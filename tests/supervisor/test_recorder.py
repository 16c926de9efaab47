"""The flight recorder against a real server: what it writes, how large, and that it survives what kills others."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.test_vitals import V1
from tests.fakes.metrics_server import serving
from tests.supervisor.fake import wait_for
from trimtab.engine.flight import MemoryUsed, Moment, encode_moment
from trimtab.supervisor.recorder import DIRECTORY, SEGMENT_BYTES, SEGMENTS, FlightLog, Recorder, read_flight, segments
from trimtab.supervisor.states import State

MEMORY = MemoryUsed((70_000, 71_000), (81_559, 81_559), 120_000)
EIGHT_CARDS = Moment(
    at=1_796_023_428.25, running=1024, waiting=20_000, kv=0.9999, preemptions=1_234_567, finished=12_345_678,
    generated=12_345_678_901, prompted=123_456_789_012, hits=123_456_789_012, queries=123_456_789_012,
    steps=123_456_789, longest_finished=1_000_000, gpu_mib=(181_559,) * 8, gpu_total_mib=(183_359,) * 8,
    ram_mib=2_097_152,
)  # fmt: skip


def recorder(home: Path, url: str) -> Recorder:
    return Recorder(home, f"{url}/v1", lambda: MEMORY, every_s=0.02)


def test_it_records_while_the_engine_serves(tmp_path: Path) -> None:
    with serving(V1) as server:
        flight = recorder(tmp_path, server.url)
        flight.state(State.LOADING)
        flight.state(State.READY)
        wait_for(lambda: len(read_flight(tmp_path)) > 2)
        assert server.headers["Accept-Encoding"] == "identity"
        flight.state(State.CRASHED)
        flight.close()
        kept = read_flight(tmp_path)
        asked = server.asked
    first = kept[0]
    assert (first.running, first.waiting, first.kv, first.preemptions, first.generated) == (5, 4, 0.75, 7, 1_250_000)
    assert (first.gpu_mib, first.ram_mib, first.longest_finished) == ((70_000, 71_000), 120_000, None)
    assert asked == len(kept)


def test_a_second_start_goes_on_in_the_same_files(tmp_path: Path) -> None:
    with serving(V1) as server:
        flight = recorder(tmp_path, server.url)
        for _ in range(2):
            flight.state(State.READY)
            had = len(read_flight(tmp_path))
            wait_for(lambda: len(read_flight(tmp_path)) > had)  # noqa: B023 - called at once
            flight.state(State.DRAINING)
            flight.state(State.FAILED_TO_START)
        flight.close()
    assert len(segments(tmp_path / DIRECTORY)) == 1


def test_what_is_not_seen_is_absent(tmp_path: Path) -> None:
    with serving("python_info 1\n") as server:
        flight = recorder(tmp_path, server.url)
        flight.state(State.READY)
        wait_for(lambda: read_flight(tmp_path))
        server.status = 404
        had = len(read_flight(tmp_path))
        wait_for(lambda: len(read_flight(tmp_path)) > had + 1)
    wait_for(lambda: read_flight(tmp_path)[-1].silent)
    flight.close()
    first, last = read_flight(tmp_path)[0], read_flight(tmp_path)[-1]
    assert (first.running, first.kv, first.silent, first.ram_mib) == (None, None, False, 120_000)
    assert (last.running, last.silent) == (None, True)
    assert b"running" not in encode_moment(first)


def test_a_server_that_closes_each_connection(tmp_path: Path) -> None:
    with serving(V1) as server:
        server.keep_alive = False
        flight = recorder(tmp_path, server.url)
        flight.state(State.READY)
        kept = wait_for(lambda: found if len(found := read_flight(tmp_path)) > 3 else None)
        flight.close()
    assert not any(moment.silent for moment in kept)


def test_a_memory_probe_that_fails_leaves_the_server_alone(tmp_path: Path) -> None:
    with serving(V1) as server:
        flight = Recorder(tmp_path / "gone" / "x", server.url, lambda: MEMORY, every_s=0.02)
        (tmp_path / "gone").write_text("a file where a directory should be")
        flight.state(State.READY)
        wait_for(lambda: server.asked > 2)
        flight.close()


def test_forty_eight_hours_of_eight_cards_in_20_mb(tmp_path: Path) -> None:
    size = len(encode_moment(EIGHT_CARDS))
    whole_segments_hold = (SEGMENTS - 1) * (SEGMENT_BYTES // size)
    assert whole_segments_hold * 5 >= 48 * 3600
    log = FlightLog(tmp_path, segment_bytes=10 * size, segments=SEGMENTS)
    for number in range(100):
        log.write(Moment(at=number, running=1024, generated=12_345_678_901, gpu_mib=(181_559,) * 8, ram_mib=2**21))
    log.close()
    total = sum(file.stat().st_size for file in segments(tmp_path / DIRECTORY))
    assert total <= SEGMENTS * 10 * size
    assert SEGMENTS * SEGMENT_BYTES <= 20_000_000
    kept = [moment.at for moment in read_flight(tmp_path)]
    assert kept == sorted(kept)
    assert kept[-1] == 99
    assert len(kept) >= 4 * 10


def test_the_window_before_a_moment(tmp_path: Path) -> None:
    log = FlightLog(tmp_path, segment_bytes=300)
    for number in range(20):
        log.write(Moment(at=float(number), running=number))
    log.close()
    assert [moment.at for moment in read_flight(tmp_path, 15, 18)] == [15, 16, 17, 18]


@pytest.mark.parametrize("left", [b'{"at":3.0,"runn', b"\x00" * 40, b'{"at":"x"}', b"\xff\xfe"])
def test_a_torn_last_record_is_left_out_and_the_next_is_whole(tmp_path: Path, left: bytes) -> None:
    log = FlightLog(tmp_path)
    log.write(Moment(at=1.0))
    log.close()
    with segments(tmp_path / DIRECTORY)[0].open("ab") as file:
        file.write(left)
    again = FlightLog(tmp_path)
    again.write(Moment(at=4.0, running=1))
    again.close()
    assert read_flight(tmp_path) == [Moment(at=1.0), Moment(at=4.0, running=1)]


def test_killed_while_it_records(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from trimtab.engine.flight import Moment\n"
        "from trimtab.supervisor.recorder import FlightLog\n"
        "log = FlightLog(Path(sys.argv[1]), segment_bytes=2000); n = 0\n"
        "while True: log.write(Moment(at=float(n), running=n)); n += 1\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) as child:
        wait_for(lambda: len(read_flight(tmp_path)) > 50)
        child.send_signal(signal.SIGKILL)
    kept = [moment.at for moment in read_flight(tmp_path)]
    assert kept == [kept[0] + n for n in range(len(kept))]


def test_a_full_disk_loses_moments_and_nothing_else(tmp_path: Path) -> None:
    """A limit on the size of files stands for it: the write that meets it is cut short, as on a full disk."""
    code = (
        "import resource, signal, sys; from pathlib import Path; from trimtab.engine.flight import Moment\n"
        "from trimtab.supervisor.recorder import FlightLog\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "log = FlightLog(Path(sys.argv[1])); log.write(Moment(at=0.0))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))\n"
        "for n in range(1, 20): log.write(Moment(at=float(n), running=n))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "log.write(Moment(at=99.0)); log.close()\n"
    )
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    kept = [moment.at for moment in read_flight(tmp_path)]
    assert kept[0] == 0
    assert kept[-1] == 99
    assert os.listdir(tmp_path / DIRECTORY) == ["000001.jsonl"]
