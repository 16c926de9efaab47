"""The search: legal splits, preferences, versions, and that its answer is always the same and clean."""

from __future__ import annotations

import subprocess
import sys

import pytest
from msgspec.structs import replace

from trimtab.cli.plan_check import checked
from trimtab.errors import UsageError
from trimtab.facts.catalogue.lookup import find_model
from trimtab.facts.gpu import parse_gpus
from trimtab.facts.model import read_model
from trimtab.plan.estimate import TOKEN_BOUND_S
from trimtab.plan.kinds import kinds as kinds_of_cards
from trimtab.plan.memory.card import Card, cards_of
from trimtab.plan.planner import Plan, Task, Wish, plan, plan_if_fits
from trimtab.plan.safety import reserve
from trimtab.plan.search import typed
from trimtab.plan.sets import rank_sets
from trimtab.plan.splits import splits
from trimtab.plan.wish import alike, read_preference

QWEN, DEEPSEEK = "Qwen/Qwen2.5-7B-Instruct", "deepseek-ai/DeepSeek-V2-Lite"
MODELS = (
    QWEN, "Qwen/Qwen2.5-72B-Instruct", "meta-llama/Llama-3.1-70B-Instruct", "Qwen/Qwen3-30B-A3B", DEEPSEEK,
    "google/gemma-3-27b-it", "openai/gpt-oss-20b", "deepseek-ai/DeepSeek-V3", "Qwen/Qwen3-Next-80B-A3B-Instruct",
)  # fmt: skip
SETS = ("A10", "8xA10", "2xH100", "8xH200", "4xA100-80")


def task(model: str, gpus: str, version: str = "0.33", **pinned: object) -> Task:
    return Task(model, "m", find_model(model).facts(), cards_of(parse_gpus(gpus)), version, pinned)


def words(made: Plan) -> str:
    return " ".join(made.command.argv())


@pytest.mark.parametrize("gpus", SETS)
@pytest.mark.parametrize("model", MODELS)
def test_the_linter_finds_nothing_in_a_plan(model: str, gpus: str) -> None:
    for prefer in ("balanced", "latency", "throughput"):
        made = plan(task(model, gpus), Wish(8192, prefer=read_preference(prefer)))
        if made.fits:
            assert [(f.rule.code, str(f.message)) for f in checked(made, parse_gpus(gpus)).findings] == []


def test_latency_bounds_what_one_longest_prompt_causes() -> None:
    made = plan(task(QWEN, "A100-80"), Wish(32768, 4, prefer="latency"))
    assert made.fits
    assert made.estimate is not None
    assert made.estimate.stall_s is not None
    assert made.estimate.stall_s.high <= TOKEN_BOUND_S
    assert made.budget.settings.max_num_batched_tokens < 8192
    said = next(w for w in made.why if w.flag == "--max-num-batched-tokens")
    assert "32,768" in str(said.reason)


def test_throughput_uses_cards_that_balanced_leaves_free() -> None:
    few, many = (plan(task(QWEN, "4xA100-80"), Wish(8192, 32, prefer=p)) for p in ("balanced", "throughput"))
    assert few.split.cards == 1
    assert any("stay free" in str(one) for one in few.given_up)
    assert many.split.cards == 4
    assert many.lost


def test_no_more_pipeline_stages_than_are_needed() -> None:
    made = plan(task("deepseek-ai/DeepSeek-V3", "16xH100"), Wish(32768, 8, prefer="throughput"))
    assert (made.split.tensor, made.split.pipeline) == (8, 2)


def test_a_model_not_run_in_float16_gets_float32() -> None:
    made = plan(task("google/gemma-3-27b-it", "8xV100-32", "0.19"), Wish(8192, 2))
    assert "--dtype float32" in words(made)


def test_data_ranks_hold_what_tensor_ranks_of_mla_cannot() -> None:
    made = plan(task(DEEPSEEK, "2xH200"), Wish(163840, 36))
    assert made.fits
    assert (made.split.data, made.split.experts) == (2, True)
    assert made.holds >= 36
    assert "--max-num-seqs 18" in words(made)


def test_old_releases_get_no_newer_flags() -> None:
    assert all(s.data == 1 and not s.experts for s in splits(task(DEEPSEEK, "8xH100", "0.6.6")))
    made = plan(task(QWEN, "A100-80", "0.6.6"), Wish(16384, 4))
    assert "--enable-chunked-prefill" in words(made)


def test_the_room_kept_free_is_computed() -> None:
    small, large = (plan(task(QWEN, "A100-80", "0.20"), Wish(2048, n)) for n in (2, 256))
    kept = [reserve(made.budget, made.budget.tightest) for made in (small, large)]
    assert kept[1].total > kept[0].total
    assert all(made.budget.tightest.headroom.value >= k.total for made, k in zip((small, large), kept, strict=True))


def test_what_other_processes_hold_is_left_to_them() -> None:
    alone = task(QWEN, "A100-80")
    shared = Task(QWEN, "m", alone.model, tuple(_with_taken(c, 20.0) for c in alone.cards), "0.33", {})
    assert plan(shared, Wish(8192, 4)).budget.settings.gpu_memory_utilization <= 0.74


def _with_taken(card: Card, gib: float) -> Card:
    return Card(card.name, card.total_gib, card.capability, card.vendor, card.unified, card.nvlink, gib)


def test_mixed_cards_count_as_the_weakest() -> None:
    cards = alike(cards_of(parse_gpus("H100 + A10")))
    assert {c.name for c in cards} == {"A10"}
    assert len(cards) == 2
    with pytest.raises(UsageError, match="makers"):
        alike(cards_of(parse_gpus("H100 + MI300X")))


def test_pinned_numbers_are_read_as_vllm_reads_them() -> None:
    assert typed({"max_model_len": "8k", "kv_cache_dtype": "fp8"}) == {"max_model_len": 8000, "kv_cache_dtype": "fp8"}
    assert "--max-model-len auto" in words(plan(task(QWEN, "A10", max_model_len="auto"), Wish()))


def test_nothing_fits_names_nearest_plans_with_their_cost() -> None:
    made = plan(task("Qwen/Qwen2.5-72B-Instruct", "4xA10"), Wish(32768, 4))
    assert not made.fits
    said = [str(one.what) for one in made.alternatives]
    assert any("AWQ" in what for what in said)
    assert any("x A10" in what for what in said)
    assert all(str(one.cost) for one in made.alternatives)


def test_sets_of_cards_are_ranked_by_memory() -> None:
    kinds = kinds_of_cards()
    found = rank_sets(task(QWEN, "A10"), Wish(32768, 16), kinds, plan_if_fits)
    assert found
    assert [round(one.total_gib) for one in found] == sorted(round(one.total_gib) for one in found)
    assert all(one.plan.fits for one in found)


@pytest.mark.parametrize(
    "wish", [Wish(8192, 4, 8000, 400), Wish(8192, 4, 0, 10), Wish(8192, 4, 10, -1), Wish(8192, 0), Wish(-1, 4)]
)
def test_wishes_without_sense_are_refused(wish: Wish) -> None:
    with pytest.raises(UsageError):
        plan(task(QWEN, "H200"), wish)


def test_a_wish_against_a_pinned_flag_is_refused() -> None:
    with pytest.raises(UsageError, match="contradict"):
        plan(task(QWEN, "H200", max_model_len=4096), Wish(8192, 4))
    with pytest.raises(UsageError, match="latencey"):
        read_preference("latencey")


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        (("deepseek-ai/DeepSeek-V3", "--gpu", "8xH200", "--prefer", "throughput"), 0),
        ((QWEN, "--gpu", "any", "--context", "32768", "--concurrency", "16"), 0),
        (("Qwen/Qwen2.5-72B-Instruct", "--gpu", "4xA10", "--context", "32768", "--concurrency", "16"), 1),
    ],
)
def test_the_same_plan_in_every_process(wish: tuple[str, ...], code: int) -> None:
    said = set()
    for seed in ("0", "1", "77"):
        call = [sys.executable, "-m", "trimtab", "plan", *wish, "--json"]
        done = subprocess.run(call, capture_output=True, text=True, env={"PYTHONHASHSEED": seed}, check=False)
        assert done.returncode == code, done.stderr
        said.add(done.stdout)
    assert len(said) == 1


def test_a_release_that_is_built_for_the_cards_is_chosen() -> None:
    asked = replace(task("Qwen/Qwen2.5-72B-Instruct", "8xV100-32", "0.33.0"), any_vllm=True)
    made = plan(asked, Wish(32768, 2))
    assert made.fits
    assert str(made.budget.settings.version) == "0.19.1"
    assert any("0.19.1 is the last" in str(one) for one in made.given_up)


@pytest.mark.parametrize(
    ("model", "gpus", "version", "said"),
    [
        ("Qwen/Qwen2.5-72B-Instruct", "8xV100-32", "0.33.0", "V100 has compute capability 7.0; vLLM 0.33.0 is built"),
        ("openai/gpt-oss-20b", "2xT4", "0.33.0", "mxfp4 needs compute capability 8.0"),
        ("Qwen/Qwen2.5-32B-Instruct-AWQ", "2xV100-32", "0.19.0", "awq needs compute capability 7.5"),
        (QWEN, "sm_60 80GiB", "0.19.0", "is built for 7.0 and newer"),
    ],
)
def test_what_vllm_does_not_run_is_refused(model: str, gpus: str, version: str, said: str) -> None:
    made = plan(task(model, gpus, version), Wish(8192, 1))
    assert (made.fits, made.verdict) == (False, "unsupported")
    assert said in str(made.reasons[0])
    assert [f.rule.code for f in checked(made, parse_gpus(gpus)).findings] in (["CMD210"], ["CMD203"])
    assert made.alternatives


def test_an_older_release_is_named_where_the_given_one_is_too_new() -> None:
    made = plan(task("Qwen/Qwen2.5-72B-Instruct", "8xV100-32", "0.33.0"), Wish(32768, 2))
    assert str(made.alternatives[0].what) == "vLLM 0.19.1 instead of 0.33.0"
    assert "--dtype half" in " ".join(made.alternatives[0].command.argv())


def test_too_few_at_once_is_a_verdict_of_its_own() -> None:
    made = plan(task("Qwen/Qwen2.5-72B-Instruct", "4xA100-80"), Wish(32768, 64))
    assert (made.budget.verdict, made.verdict, made.fits) == ("fits", "too_few_at_once", False)
    assert "of 64 requests of 32,768 tokens" in str(made.reasons[0])


def test_weights_go_to_the_host_only_where_nothing_on_the_cards_serves() -> None:
    some = plan(task("Qwen/Qwen2.5-72B-Instruct", "4xA10"), Wish(32768, 4))
    assert not any("--cpu-offload-gb" in str(one.what) for one in some.alternatives)
    none = plan(task("openai/gpt-oss-120b", "2xA10"), Wish(8192, 1))
    hosted = next(one for one in none.alternatives if "--cpu-offload-gb" in str(one.what))
    assert "over PCIe" in str(hosted.cost)
    assert hosted.budget.verdict == "fits"
    assert "--cpu-offload-gb" in " ".join(hosted.command.argv())
    ignored = plan(task("Qwen/Qwen2.5-32B-Instruct-AWQ", "T4", "0.26"), Wish(8192, 1))
    assert ignored.budget.settings.runner == "v2"
    assert not any("--cpu-offload-gb" in str(one.what) for one in ignored.alternatives)


def test_flags_that_stay_out_are_told_with_numbers() -> None:
    made = plan(task(QWEN, "H100", "0.33"), Wish(16384, 4))
    said = {one.what: str(one.reason) for one in made.considered}
    flags = ("enforce-eager", "enable-prefix-caching", "kv-cache-memory-bytes", "performance-mode", "cpu-offload-gb",
             "kv-offloading-size", "max-model-len auto", "kv-cache-dtype fp8")  # fmt: skip
    assert {f"--{flag}" for flag in flags} <= set(said)
    assert f"{made.budget.tightest.graphs.value:.2f} GiB" in said["--enforce-eager"]
    assert said["--enable-prefix-caching"].startswith("on by itself")
    assert f"instead of {made.holds:.1f}" in said["--kv-cache-dtype fp8"]
    assert any("AWQ" in what and "FP8" in what for what in said)
    assert all(one.source for one in made.considered)


def test_two_changes_at_once_where_none_alone_serves() -> None:
    made = plan(task("Qwen/Qwen2.5-72B-Instruct", "4xA10"), Wish(32768, 16))
    both = made.alternatives[0]
    assert "AWQ, and " in str(both.what)
    assert "at most 4 at once instead of 16" in str(both.what)
    assert both.budget.verdict == "fits"
    assert not any("--cpu-offload-gb" in str(one.what) for one in made.alternatives)


def test_only_flags_of_this_vllm_are_considered() -> None:
    old = {one.what for one in plan(task(QWEN, "A100-80", "0.6.6"), Wish(16384, 4)).considered}
    assert not old & {"--performance-mode", "--kv-offloading-size", "--max-model-len auto", "--kv-cache-memory-bytes"}
    ampere = plan(task(QWEN, "A100-80"), Wish(16384, 4)).considered
    assert "--kv-cache-dtype fp8" not in {one.what for one in ampere}


@pytest.mark.parametrize(
    ("model", "version", "said"),
    [
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", "0.26", "recurrent layers before 0.28"),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", "0.33", "on by itself"),
        (QWEN, "0.6.6", "off by itself on the V0 engine"),
        ("BAAI/bge-m3", "0.33", "does nothing"),
    ],
)
def test_what_prefix_caching_does_is_told(model: str, version: str, said: str) -> None:
    made = plan(task(model, "2xH200", version), Wish(8192, 2))
    assert said in next(str(one.reason) for one in made.considered if one.what == "--enable-prefix-caching")


def test_what_came_nearest_is_told_first() -> None:
    made = plan(task("Qwen/Qwen2.5-72B-Instruct", "8xA10"), Wish(32768, 3))
    assert [one.what for one in made.lost] == ["TP 4 x PP 2", "TP 2 x PP 4", "TP 1 x PP 8", "TP 2 x PP 2", "TP 4"]


def test_why_there_are_no_graphs_is_told_with_numbers() -> None:
    made = plan(task("microsoft/phi-4-AWQ", "A10"), Wish(16384, 4))
    why = next(str(w.reason) for w in made.why if w.flag == "--enforce-eager")
    assert "faster; with them: holds 3." in why


def test_throughput_asks_for_as_many_at_once_as_vllm_itself() -> None:
    made = plan(task(QWEN, "H200"), Wish(input_tokens=1024, output_tokens=256, prefer="throughput"))
    assert "--max-num-seqs 1024" in words(made)
    assert made.holds >= 1024


def test_a_model_that_this_vllm_does_not_know_names_one_that_does() -> None:
    made = plan(task("Qwen/Qwen3.5-9B", "H100", "0.11"), Wish(8192, 1))
    assert made.verdict == "unsupported"
    assert "0.17.0 does" in str(made.reasons[0])
    assert str(made.alternatives[0].what) == "vLLM 0.33.0 instead of 0.11"


def test_a_model_that_is_not_known_is_judged_by_nobody() -> None:
    model = read_model(
        {"architectures": ["NoSuchForCausalLM"], "model_type": "no_such", "max_position_embeddings": 4096}
    )
    mine = Task("m", "m", model, cards_of(parse_gpus("H100")), "0.33", {})
    made = plan(mine, Wish(2048, 1))
    assert (made.fits, made.verdict, made.alternatives) == (False, "unknown", ())
    assert "not known of the model" in str(made.reasons[0])
    assert plan_if_fits(mine, Wish(2048, 1)) is None


@pytest.mark.parametrize(
    ("model", "gpus"),
    [("baichuan-inc/Baichuan2-7B-Chat", "H100"), ("BAAI/bge-m3", "T4"), ("google/gemma-3-4b-it", "2xT4")],
)
def test_the_linter_has_nothing_to_mend_in_rarer_plans(model: str, gpus: str) -> None:
    """Code of the checkpoint's own, no cache, neither kind of 16 bit; a chat template is not a plan's to give."""
    made = plan(task(model, gpus), Wish(2048, 4))
    assert made.fits, made.reasons
    assert {f.rule.code for f in checked(made, parse_gpus(gpus)).findings} <= {"CMD308"}


def test_an_open_context_is_the_longest_that_other_bytes_or_cards_have_room_for() -> None:
    """Qwen3-8B: 15.3 GiB of weights on a card of 11.6; 8.8 in FP8 leave 2.2 GiB, 5.7 in AWQ 5.0; 144 KiB a token."""
    made = plan(task("Qwen/Qwen3-8B", "RTX 3060"), Wish())
    assert made.wish.context == 2048
    told = {str(one.what): one.budget.settings.max_model_len for one in made.alternatives}
    assert told == {
        "weights in FP8: Qwen/Qwen3-8B-FP8: 4 requests of 2,048 tokens at once": 2048,
        "weights in AWQ: Qwen/Qwen3-8B-AWQ: 4 requests of 8,192 tokens at once": 8192,
        "2 x RTX 3060 instead of 1: 4 requests of 8,192 tokens at once": 8192,
        "1 x A10 instead of 1 x RTX 3060: 4 requests of 8,192 tokens at once": 8192,
    }


def test_memory_shared_with_the_host_leaves_the_system_its_part() -> None:
    made = plan(task("openai/gpt-oss-120b", "GB10"), Wish(32768, 4))
    assert made.reserve is not None
    assert made.reserve.host == pytest.approx(12.16)
    assert made.budget.settings.gpu_memory_utilization <= 0.9
    why = next(str(w.reason) for w in made.why if w.flag == "--gpu-memory-utilization")
    assert "12.16 the system and its processes, which share this memory" in why


def test_room_for_nccl_in_graphs_is_kept_and_told() -> None:
    made = plan(task("meta-llama/Llama-3.3-70B-Instruct", "4xL40S"), Wish(16384, 4))
    assert made.reserve is not None
    assert made.reserve.communication > 0.5
    assert min(rank.headroom.value for rank in made.budget.ranks) >= made.reserve.total
    why = next(str(w.reason) for w in made.why if w.flag == "--gpu-memory-utilization")
    assert f"{made.reserve.communication:.2f} NCCL in the graphs" in why


def test_what_the_compiler_takes_once_is_no_reason_to_give_up_graphs() -> None:
    made = plan(task("Qwen/Qwen3-8B", "A10"), Wish(8192, 4))
    assert "--enforce-eager" not in words(made)
    assert made.holds >= 4
