"""Which flags are tried, by version and load, and which changes cannot gain anything."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from trimtab.bench.tuning.idle import Offered, idle
from trimtab.bench.tuning.knobs import Setting, knobs, knobs_named
from trimtab.bench.tuning.objective import Round
from trimtab.engine.flags import FlagTable, minors
from trimtab.errors import UsageError

VALUES = {"max-model-len": "4096", "max-num-seqs": "128", "max-num-batched-tokens": "8192"}
CARD = Setting(VALUES, "throughput", 128, on_cpu=False, cores=16)
OFFERED = Offered(128, 1024, 256)


def flags(setting: Setting, version: str = "0.26") -> list[str]:
    return [knob.flag for knob in knobs(FlagTable.for_version(version), setting).space.knobs]


def test_what_feeds_the_engine_comes_first_for_throughput() -> None:
    assert flags(CARD)[:3] == ["max-num-seqs", "api-server-count", "max-num-batched-tokens"]
    assert flags(replace(CARD, objective="latency"))[0] == "max-num-batched-tokens"


@pytest.mark.parametrize("version", minors())
def test_only_flags_that_a_version_has(version: str) -> None:
    table = FlagTable.for_version(version)
    found = knobs(table, replace(CARD, lossy=True))
    assert all(table.find(f"--{knob.flag}") is not None for knob in found.space.knobs)
    told = {one.flag for one in found.untried} | {knob.flag for knob in found.space.knobs}
    assert "performance-mode" in told


def test_the_search_begins_at_the_plan() -> None:
    space = knobs(FlagTable.for_version("0.26"), CARD).space
    assert space.flags(space.start)["max-num-seqs"] == "128"
    assert space.flags(space.start)["max-num-batched-tokens"] == "8192"
    assert space.flags(space.start)["api-server-count"] is None


def test_sizes_go_from_an_eighth_to_four_times() -> None:
    space = knobs(FlagTable.for_version("0.26"), CARD).space
    assert space.knobs[0].values == ("16", "32", "64", "128", "256", "512")
    assert space.knobs[2].values == ("1024", "2048", "4096", "8192", "16384", "32768")


def test_what_costs_accuracy_is_tried_when_told_to() -> None:
    assert "kv-cache-dtype" not in flags(CARD)
    assert "kv-cache-dtype" in flags(replace(CARD, lossy=True))


def test_few_requests_or_few_cores_need_one_api_server() -> None:
    assert "api-server-count" not in flags(replace(CARD, concurrency=8))
    assert "api-server-count" not in flags(replace(CARD, cores=4))


def test_pinned_flags_stay() -> None:
    found = knobs(FlagTable.for_version("0.26"), replace(CARD, pinned=frozenset({"max-num-seqs"})))
    assert "max-num-seqs" not in [knob.flag for knob in found.space.knobs]
    assert "set by you" in {str(one.reason) for one in found.untried if one.flag == "max-num-seqs"}


def test_nothing_left_to_change_is_an_error() -> None:
    everything = frozenset(flags(CARD))
    with pytest.raises(UsageError, match="nothing to tune"):
        knobs(FlagTable.for_version("0.26"), replace(CARD, pinned=everything))


def test_named_values_are_ordered_and_hold_the_plans() -> None:
    space = knobs_named(FlagTable.for_version("0.26"), CARD, ["--max_num_seqs=512,64", "enforce-eager=on,off"]).space
    assert space.knobs[0].values == ("64", "128", "512")
    assert (space.knobs[1].values, space.knobs[1].ordered) == (("true", None), False)
    assert space.start == (1, 1)
    assert space.size == 6


def test_more_at_once_than_the_load_has_cannot_gain() -> None:
    why = idle("max-num-seqs", "128", "256", OFFERED, [], "throughput")
    assert "never has more than 128" in str(why)
    assert idle("max-num-seqs", "64", "128", OFFERED, [], "throughput") is None


def test_a_larger_step_than_all_prompts_together_cannot_gain() -> None:
    small = Offered(2, 1000, 10)
    assert "2,000 tokens" in str(idle("max-num-batched-tokens", "8192", "16384", small, [], "throughput"))
    assert idle("max-num-batched-tokens", "8192", "16384", OFFERED, [], "throughput") is None


def test_fewer_at_once_gain_no_throughput_where_the_cache_was_never_full() -> None:
    calm = Round(requests=9, span_s=1, output_tokens_s=1, total_tokens_s=1, requests_s=1,
                 server={"most_kv_usage": 0.4, "preemptions": 0})  # fmt: skip
    full = replace(calm, server={"most_kv_usage": 0.99, "preemptions": 3})
    assert "40% full" in str(idle("max-num-seqs", "128", "64", OFFERED, [calm], "throughput"))
    assert idle("max-num-seqs", "128", "64", OFFERED, [full], "throughput") is None
    assert idle("max-num-seqs", "128", "64", OFFERED, [calm], "latency") is None
    assert idle("max-num-seqs", "128", "64", OFFERED, [], "throughput") is None
    assert idle("async-scheduling", None, "false", OFFERED, [calm], "throughput") is None
