"""What limits a server, from looks at its counters: each kind, its opposite, and what cannot be said."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.engine.bottleneck import Kind, Look, Slots, look_of, missing, rates, read_bottleneck
from trimtab.engine.flight import Moment
from trimtab.engine.vitals import Vitals

CALM = Vitals(
    running=4, waiting=0, kv_usage=0.4, preemptions=2, finished=10, generated=1000, prompted=5000, steps=100, hits=800,
    queries=5000, prefilled_s=1.0, decoded_s=9.0,
)  # fmt: skip
EIGHT = Slots(8)


def minute(last: Vitals, first: Vitals = CALM, looks: int = 13) -> list[Look]:
    """Looks over 60 s that move evenly from one to the other."""

    def between(part: float) -> Vitals:
        numbers = {
            name: (a + (b - a) * part if isinstance(a, float) else round(a + (b - a) * part))
            for name in Vitals.__struct_fields__
            if isinstance(a := getattr(first, name), int | float) and isinstance(b := getattr(last, name), int | float)
        }
        return replace(last, **numbers)

    return [Look(1000.0 + 60 * n / (looks - 1), between(n / (looks - 1))) for n in range(looks)]


def later(**more: object) -> Vitals:
    """A minute after CALM, at work."""
    worked = {"finished": 30, "generated": 7000, "prompted": 17_000, "steps": 400, "hits": 6800, "queries": 17_000,
              "prefilled_s": 3.0, "decoded_s": 29.0}  # fmt: skip
    return replace(CALM, **{**worked, **more})


def said(last: Vitals, slots: Slots = EIGHT, first: Vitals = CALM) -> tuple[Kind, str]:
    found = read_bottleneck(minute(last, first), slots)
    return found.kind, str(found.text)


def test_fine_with_room() -> None:
    assert said(later()) == (Kind.FINE, "fine: 4 run, none waits; room for about 4 more like these")
    assert said(later(), Slots())[1].endswith("room for about 6 more like these")
    assert said(later(running=8)) == (Kind.FINE, "fine: 8 run, none waits")


def test_kv_bound_by_preemptions() -> None:
    kind, text = said(later(running=8, preemptions=5, kv_usage=0.99))
    assert kind is Kind.KV_BOUND
    assert text == (
        "KV-bound: 3 preemptions in the last 60 s with up to 8 running; raise --gpu-memory-utilization (more KV cache) "
        "or lower --max-num-seqs (below 8) or --max-model-len"
    )


def test_kv_bound_without_a_preemption() -> None:
    kind, text = said(later(running=8, waiting=3, kv_usage=0.97))
    assert (kind, text.partition(";")[0]) == (Kind.KV_BOUND, "KV-bound: 3 wait for the KV cache, which is 97% full")


def test_queue_bound() -> None:
    kind, text = said(later(running=8, waiting=5))
    assert kind is Kind.QUEUE_BOUND
    assert text == (
        "queue-bound: 5 wait while 8 run (--max-num-seqs is 8), and the KV cache is 40% full; raise --max-num-seqs, or "
        "add a server"
    )
    assert "--max-num-seqs is not known here" in said(later(running=8, waiting=5), Slots())[1]
    assert "prompts wait for room in a step" in said(later(running=3, waiting=5))[1]
    assert "more KV cache than is free" in said(later(running=3, waiting=5, kv_usage=0.8))[1]


def test_prefill_bound() -> None:
    kind, text = said(later(prefilled_s=25.0, waiting=2, prompted=605_000))
    assert kind is Kind.PREFILL_BOUND
    assert "requests spend 51% of their time" in said(later(prefilled_s=22.0, decoded_s=29.0))[1]
    assert "10000 prompt tokens/s, 100 generated" in text.replace("10,000", "10000")


def test_near_full_and_low_hits_and_idle() -> None:
    assert said(later(kv_usage=0.93))[0] is Kind.NEAR_FULL
    kind, text = said(later(hits=900))
    assert (kind, text.partition(";")[0]) == (
        Kind.LOW_HITS, "low prefix hits: 1% of 12,000 prompt tokens came from the cache",
    )  # fmt: skip
    assert said(later(hits=850, queries=6000))[0] is Kind.FINE  # too few tokens to say
    idle = replace(CALM, running=0, kv_usage=0.0)
    assert said(idle, first=idle)[0] is Kind.IDLE


def test_stalled_whatever_else_is_true() -> None:
    still = replace(CALM, waiting=3, kv_usage=0.99)
    kind, text = said(still, first=still)
    assert (kind, text.partition(";")[0]) == (
        Kind.STALLED, "stalled: 4 requests run, 3 wait, and nothing moved for 60 s",
    )  # fmt: skip
    moving = replace(still, steps=130)  # a long prompt is computed: no token yet, but steps
    assert said(moving, first=still)[0] is not Kind.STALLED


def test_a_version_that_does_not_tell_is_not_called_fine() -> None:
    old = Vitals(running=2, waiting=0, generated=500)
    kind, text = said(replace(old, generated=900), first=old)
    assert kind is Kind.UNKNOWN
    assert "does not tell KV use, preemptions" in text
    assert missing(old) == ("KV use", "prompt tokens", "prefix hits", "preemptions")
    assert missing(CALM) == missing(None) == ()
    nothing_moves = Vitals(running=2, waiting=0, kv_usage=0.3)
    assert said(nothing_moves, first=nothing_moves)[0] is Kind.UNKNOWN


def test_no_answer_and_no_look() -> None:
    assert read_bottleneck([Look(1.0, CALM), Look(2.0, None)], EIGHT).kind is Kind.UNKNOWN
    assert read_bottleneck([], EIGHT).kind is Kind.UNKNOWN
    assert rates([]).tokens_s is None


def test_one_look_has_no_rates() -> None:
    found = rates([Look(1.0, CALM)])
    assert (found.tokens_s, found.preemptions, found.hit_rate) == (None, None, 0.16)
    assert read_bottleneck([Look(1.0, CALM)], EIGHT).kind is Kind.FINE


def test_a_server_that_was_started_anew_in_the_window() -> None:
    looks = [Look(0.0, replace(CALM, generated=9000)), Look(10.0, replace(CALM, generated=100, preemptions=0))]
    found = rates(looks)
    assert (found.tokens_s, found.preemptions) == (10.0, 0)


def test_the_flight_recorder_s_moments_are_looks() -> None:
    moment = Moment(at=5.0, running=1, waiting=0, kv=0.2, preemptions=0, generated=5)
    look = look_of(moment)
    assert look.vitals is not None
    assert (look.at, look.vitals.kv_usage, look.vitals.generated) == (5.0, 0.2, 5)
    assert look_of(Moment(at=5.0, silent=True)).vitals is None
