"""The ten minutes before: a row a minute, and what stands out."""

from __future__ import annotations

from trimtab.engine.before import Minute, grown, minutes_before
from trimtab.engine.flight import Moment

AT = 10_000.0


def falling() -> list[Moment]:
    """A server whose KV cache fills, whose host memory runs out, and which then falls silent."""
    loud = [
        Moment(
            at=AT - 600 + 5 * n, running=8, waiting=n // 10, kv=min(1.0, n / 100), preemptions=max(0, n - 80),
            generated=100 * n, steps=n, gpu_mib=(70_000, 60_000 + 10 * n), gpu_total_mib=(81_559, 81_559),
            ram_mib=40_000 - 350 * n, longest_finished=20_000 if n == 7 else None,
        )
        for n in range(114)
    ]  # fmt: skip
    return [*loud, *(Moment(at=AT - 600 + 5 * n, ram_mib=90, silent=True) for n in range(114, 120))]


def test_rows_and_sentence() -> None:
    before = minutes_before(falling(), AT)
    assert [row.ago for row in before.minutes] == list(range(10, 0, -1))
    first, last = before.minutes[0], before.minutes[-1]
    assert first == Minute(
        ago=10, running=8, waiting=1, kv=0.11, preemptions=0, tokens_s=20.0, longest_finished=20_000, gpu_mib=70_000,
        gpu_total_mib=81_559, ram_mib=36_150,
    )  # fmt: skip
    assert (last.silent, last.ram_mib, last.kv) == (6, 90, 1.0)
    assert str(before.sentence) == (
        "/metrics gave no answer in the last 35 s; free host memory fell from 39.1 to 0.1 GiB: next to nothing; "
        "the KV cache was up to 100% full, with 33 preemptions; up to 8 requests ran and 11 waited; "
        "the fullest card held 70.0 of 79.6 GiB; the longest prompt of a finished request had at most 20,000 tokens"
    ).replace("70.0", f"{max(70_000, 60_000 + 1130) / 1024:.1f}")


def test_only_what_lies_in_the_window() -> None:
    before = minutes_before(
        [Moment(at=AT - 601, running=9), Moment(at=AT + 1, running=9), Moment(at=AT, running=1)], AT
    )
    assert [(row.ago, row.running) for row in before.minutes] == [(1, 1)]
    assert str(before.sentence) == "up to 1 requests ran and 0 waited"


def test_nothing_recorded() -> None:
    before = minutes_before([], AT)
    assert before.minutes == ()
    assert "saw nothing" in str(before.sentence)
    assert "nothing stands out" in str(minutes_before([Moment(at=AT)], AT).sentence)


def test_absent_is_not_zero() -> None:
    row = minutes_before([Moment(at=AT - 5), Moment(at=AT, ram_mib=5)], AT).minutes[0]
    assert row == Minute(ago=1, ram_mib=5)


def test_requests_that_run_while_nothing_moves() -> None:
    still = [Moment(at=AT - 60 + 5 * n, running=3, generated=500, steps=9, kv=0.5) for n in range(12)]
    assert str(minutes_before(still, AT).sentence).startswith("3 requests ran and nothing moved in the last 60 s")
    moving = [Moment(at=AT - 60 + 5 * n, running=3, generated=500, steps=9 + n, kv=0.5) for n in range(12)]
    assert "moved" not in str(minutes_before(moving, AT).sentence)


def test_a_count_that_began_anew() -> None:
    assert grown([100, 120, None, 5, 8]) == 28
    assert grown([100]) is None
    assert grown([None, None]) is None


def test_gpu_memory_that_grows() -> None:
    moments = [Moment(at=AT - 60 + n, gpu_mib=(70_000 + 100 * n,), gpu_total_mib=(81_559,)) for n in range(60)]
    assert "GPU memory grew from 68.4 to 74.1 of 79.6 GiB" in str(minutes_before(moments, AT).sentence)
