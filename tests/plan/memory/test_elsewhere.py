"""Rules that H200 starts of one release cannot show: other cards, releases and libraries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trimtab.facts.catalogue.lookup import find_model
from trimtab.facts.gpu import parse_gpus
from trimtab.facts.model import ModelFacts, read_model
from trimtab.plan.memory import Budget, Given, budget, cards_of, release, resolve
from trimtab.plan.memory.bounds import out_of_bounds
from trimtab.plan.memory.fusion import fusion_bytes

CONFIGS = Path(__file__).parents[3] / "benchmarks" / "data" / "configs"
MIB = 1 << 20


def config(name: str) -> ModelFacts:
    return read_model(json.loads((CONFIGS / f"{name}.json").read_text()))


def planned(model: ModelFacts, version: str, gpus: str, **flags: object) -> Budget:
    cards = cards_of(parse_gpus(gpus))
    return budget(resolve(Given(flags), release(version), model, cards), model, cards)


@pytest.mark.parametrize(
    ("gpus", "ranks", "eager", "version", "mib"),
    [
        ("2xH100", 2, False, "0.19.1", 1536),
        ("4xH100", 4, False, "0.24", 1536),
        ("4xB300", 4, False, "0.19.1", 512 + 512 + 1024),
        ("4xB200", 4, False, "0.26", 3 * 2 * 32),
        ("2xH100 NVL", 2, False, "0.19.1", 0),
        ("2xH100", 2, True, "0.19.1", 0),
        ("2xH100", 2, False, "0.16", 0),
        ("2xA100", 2, False, "0.19.1", 0),
        ("2xRTX PRO 6000", 2, False, "0.26", 0),
    ],
)
def test_fused_all_reduce_takes_three_buffers_rounded_up_for_multicast(
    gpus: str, ranks: int, eager: bool, version: str, mib: int
) -> None:
    made = planned(config("llama-3.1-8b"), version, gpus, tensor_parallel_size=ranks, enforce_eager=eager)
    assert fusion_bytes(made.settings, made.model) // MIB == mib


def test_a_model_that_captures_its_own_graphs_is_not_compiled() -> None:
    """DeepSeek V4 from 0.23: neither the fused all-reduce nor the compiler's copy of the embedding."""
    model = find_model("deepseek-ai/DeepSeek-V4-Flash").facts()
    for version, mib in (("0.22.0", 1536), ("0.23.0", 0)):
        made = planned(model, version, "2xH200", tensor_parallel_size=2, max_model_len=8192)
        assert fusion_bytes(made.settings, made.model) // MIB == mib
    assert planned(model, "0.26", "2xH200", tensor_parallel_size=2).tightest.activation.inputs["compiling_gib"] == 0.0


def test_packing_after_loading_leaves_holes_that_0_6_6_counts() -> None:
    """Llama-3.1-70B with online fp8: a start of 0.6.5 on MI300X told 6.07 GiB non-torch, 1.8 of them HIP's."""
    model = find_model("meta-llama/Llama-3.1-70B-Instruct").facts()
    flags = {"quantization": "fp8", "max_model_len": 8192}
    counted, not_yet = (planned(model, v, "MI300X", **flags).tightest.context.counted for v in ("0.6.6", "0.6.4"))
    assert counted.inputs["holes_gib"] == pytest.approx(2.92, abs=0.01)
    assert not_yet.inputs["holes_gib"] == 0.0


def test_an_fp8_cache_off_hopper_is_attended_by_flashinfer() -> None:
    """A start of 0.20 on 2 x RTX 3090 told 9.84 GiB, 619,202 tokens and 0.49 GiB of graphs; beside drafts it has
    piecewise graphs alone."""
    model = find_model("Qwen/Qwen3.6-27B-AWQ").facts()
    flags = {"tensor_parallel_size": 2, "kv_cache_dtype": "fp8_e5m2", "gpu_memory_utilization": 0.88}
    flags |= {"max_num_batched_tokens": 8192, "max_num_seqs": 2, "enable_prefix_caching": True, "dtype": "float16"}
    made = planned(model, "0.20.1", "2xRTX 3090", **flags)
    assert made.tightest.kv_cache.value == pytest.approx(9.84, abs=0.03)
    assert made.capacity.kv_cache_tokens == pytest.approx(619202, rel=0.005)
    assert made.tightest.deducted.value == pytest.approx(0.49, abs=0.02)
    flags["speculative_config"] = {"method": "mtp", "num_speculative_tokens": 3}
    drafting = planned(model, "0.20.1", "2xRTX 3090", **flags).tightest.graphs
    assert (drafting.inputs["whole"], drafting.value < 0.2) == (0, True)
    assert planned(model, "0.20.1", "2xH100", **flags).tightest.graphs.inputs["whole"] != 0


def test_more_than_two_ranks_on_a_switch_hold_nccl_s_credits_and_buffers() -> None:
    """nccl 2.27's `ncclNvlsInit` leaves pairs out; bridges and PCIe have no multicast."""
    model = config("llama-3.1-8b")
    held = {
        gpus: planned(model, "0.10.2", gpus, tensor_parallel_size=ranks).tightest.context.counted.inputs["nccl_gib"]
        for gpus, ranks in (("2xH100", 2), ("4xH100", 4), ("4xH100 NVL", 4), ("4xA100", 4))
    }
    assert held["4xH100"] - held["2xH100"] == pytest.approx(4 * 96 / 1024)
    assert held["4xH100 NVL"] == held["4xA100"] == held["2xH100"]


def test_flashinfer_samples_without_the_triton_kernels_rows() -> None:
    """From 0.21 on cards of NVIDIA; 0.20 and ROCm keep Triton's."""
    peaks = [
        planned(config("qwen3-8b"), version, gpu, max_model_len=8192).tightest.activation.value
        for version, gpu in (("0.20.0", "RTX 4090"), ("0.21.0", "RTX 4090"))
    ]
    assert peaks[0] - peaks[1] == pytest.approx(132 * 151936 * 4 / (1 << 30), abs=0.001)


@pytest.mark.parametrize(("utilization", "kv"), [(0.7, 15.58), (0.5, -8.93)])
def test_the_host_takes_its_part_of_unified_memory(utilization: float, kv: float) -> None:
    """A release of 0.17 to 0.19 on GB10, Qwen3.5-35B-A3B in 16 bit: what two starts logged."""
    model = find_model("Qwen/Qwen3.5-35B-A3B").facts()
    flags = {"max_model_len": 8192, "enforce_eager": True, "gpu_memory_utilization": utilization}
    assert planned(model, "0.18", "GB10", **flags).tightest.kv_cache.value == pytest.approx(kv, abs=0.3)


def test_a_rotary_vision_tower_is_widest_in_its_attention() -> None:
    """0.20.0 on a 5090: 2.44 GiB beside Qwen3.5-9B's weights and cache, graphs and libraries among them."""
    model = find_model("Qwen/Qwen3.5-9B").facts()
    rank = planned(model, "0.20.0", "RTX 5090", max_model_len=4096, gpu_memory_utilization=0.85).tightest
    assert rank.activation.value == pytest.approx(1.9, abs=0.05)
    assert rank.activation.value + rank.context.counted.value + rank.deducted.value == pytest.approx(2.44, abs=0.12)


def test_encoder_inputs_stay_beside_the_sampler() -> None:
    """0.10.1 on B200 logged 9.96 GiB for Gemma-3-4B with 1,024 sequences: 32 images and their embeddings among them."""
    peak = planned(config("gemma-3-4b"), "0.10.1", "B200").tightest.activation
    assert peak.value == pytest.approx(9.96, rel=0.025)


def test_experts_split_over_hopper_run_triton_from_0_17() -> None:
    """0.19.1 logged the Triton backend for MiniMax-M2.5 with TP 4 on H100; 0.16 aligned rows for DeepGEMM."""
    flags = {"tensor_parallel_size": 4, "max_num_seqs": 10, "max_num_batched_tokens": 8192}
    model = find_model("MiniMaxAI/MiniMax-M2.5").facts()
    old, new = (planned(model, v, "4xH100", **flags).tightest.activation.value for v in ("0.16", "0.19"))
    assert old - new == pytest.approx(0.65, abs=0.1)


def test_before_0_3_a_cache_shorter_than_the_context_starts() -> None:
    """0.2.0 gave LlongOrca-7B-16k 48,448 tokens for a context of 65,536 and went on."""
    made = planned(config("llongorca-7b"), "0.2.0", "RTX 6000 Ada")
    assert made.settings.max_model_len == 65536
    assert made.capacity.kv_cache_tokens == pytest.approx(48448, rel=0.025)
    assert made.verdict == "fits"


def test_long_contexts_are_chunked_by_themselves_from_0_5_4() -> None:
    """A report of 0.5.0 ran out of memory in a profile run of 1,048,576 tokens."""
    model = find_model("meta-llama/Llama-3.1-8B-Instruct").facts()
    old, new = (planned(model, v, "A100", max_model_len=131072) for v in ("0.5.0", "0.5.4"))
    assert old.settings.max_num_batched_tokens == 131072
    assert new.settings.max_num_batched_tokens == 512
    with_lora = planned(model, "0.6.4", "A100", max_model_len=131072, enable_lora=True)
    assert with_lora.settings.max_num_batched_tokens == 131072


def test_small_cards_took_1024_sequences_before_0_8_4() -> None:
    model = config("qwen3-8b")
    found = [planned(model, v, "RTX 4090", max_model_len=8192).settings.max_num_seqs for v in ("0.8.2", "0.8.5")]
    assert found == [1024, 256]


def test_fp8_at_load_holds_the_16_bit_model_before_0_16() -> None:
    """72 billion parameters do not go through one 80 GB card before layers are quantised as they are read."""
    model = find_model("Qwen/Qwen2.5-72B-Instruct").facts()
    flags = {"quantization": "fp8", "max_model_len": 4096, "max_num_seqs": 64}
    old, new = (planned(model, v, "H100", **flags) for v in ("0.11.0", "0.19"))
    assert old.verdict == "oom_weights"
    assert new.verdict != "oom_weights"
    assert old.tightest.weights.value == pytest.approx(new.tightest.weights.value, rel=0.01)
    on_h20 = {v: planned(model, v, "H20-141", **flags).verdict for v in ("0.12", "0.13", "0.16")}
    assert on_h20 == {"0.12": "fits", "0.13": "oom_weights", "0.16": "fits"}


@pytest.mark.parametrize("version", ["0.5.4", "0.19"])
def test_nccl_inside_graphs_wants_more_room(version: str) -> None:
    """0.10.2 with 8 x L40S took 3.45 GiB for graphs; 0.5.4 with 8 x L4 ran out while it captured Gemma-2-9B."""
    model = find_model("google/gemma-2-9b-it").facts()
    assert planned(model, version, "8xL4", tensor_parallel_size=8).verdict == "unsafe_headroom"
    assert planned(model, version, "8xL4", tensor_parallel_size=2).verdict == "fits"


@pytest.mark.parametrize(
    ("version", "flags", "runner"),
    [
        ("0.27", {}, "v2"),
        ("0.27", {"speculative_config": {"method": "ngram", "num_speculative_tokens": 3}}, "v1"),
        ("0.27", {"speculative_config": {"method": "eagle3", "num_speculative_tokens": 3}}, "v2"),
        ("0.32", {"speculative_config": {"method": "ngram", "num_speculative_tokens": 3}}, "v2"),
        ("0.27", {"enable_prompt_embeds": True}, "v1"),
        ("0.29", {"enable_prompt_embeds": True}, "v2"),
        ("0.29", {"enable_dbo": True}, "v1"),
        ("0.30", {"logits_processors": "some.module:Processor"}, "v1"),
    ],
)
def test_the_v1_runner_serves_what_v2_lacks(version: str, flags: dict[str, object], runner: str) -> None:
    assert planned(config("qwen3-8b"), version, "H100", **flags).settings.runner == runner


def test_what_the_v2_sampler_holds_a_sequence_counts_from_0_27() -> None:
    """Qwen3-14B-AWQ on L40S with 0.28: 8 sequences had 0.15 GiB more than 256, beside what their batches take."""
    model = find_model("Qwen/Qwen3-14B-AWQ").facts()
    few, many, old = (
        planned(model, v, "L40S", max_num_seqs=n, max_model_len=8192).tightest.context
        for v, n in (("0.28", 8), ("0.28", 256), ("0.26", 256))
    )
    states = 248 * 151936 * 4.125 / (1 << 30)
    assert many.counted.value - few.counted.value == pytest.approx(states, abs=0.001)
    assert many.uncounted_gib == 0
    assert old.uncounted_gib == pytest.approx(256 * 151936 * 4.125 / (1 << 30), abs=0.001)


def test_only_the_last_stage_samples() -> None:
    """Two L4 in a pipeline, Qwen3-14B-AWQ, 0.28: the first stage had 14.04 GiB."""
    model = find_model("Qwen/Qwen3-14B-AWQ").facts()
    made = planned(model, "0.28", "2xL4", pipeline_parallel_size=2, max_model_len=8192)
    assert made.tightest.stage.first
    assert made.tightest.kv_cache.value == pytest.approx(14.04, abs=0.05)


def test_blackwell_graphs_hold_flashinfers_workspace() -> None:
    """394 MiB on B200, whose attention is FlashInfer's; MLA has its own kernels there."""
    graphs = {
        gpu: planned(config("qwen3-30b-a3b"), "0.26", gpu, max_num_seqs=256, max_model_len=8192).tightest.graphs.value
        for gpu in ("B200", "RTX PRO 6000")
    }
    assert graphs["B200"] - graphs["RTX PRO 6000"] == pytest.approx(394 / 1024, abs=0.001)


@pytest.mark.parametrize(
    ("version", "asked", "deducts"),
    [("0.17", "1", False), ("0.19", None, False), ("0.19", "1", True), ("0.20.0", None, True), ("0.20.0", "0", False)],
)
def test_graphs_are_deducted_from_0_20_or_where_asked(version: str, asked: str | None, deducts: bool) -> None:
    model, cards = config("qwen3-8b"), cards_of(parse_gpus("RTX 4090"))
    env = {"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": asked} if asked else {}
    settings = resolve(Given({"max_model_len": 8192}, env), release(version), model, cards)
    assert (budget(settings, model, cards).tightest.deducted.value > 0) is deducts


@pytest.mark.parametrize(
    ("version", "flags", "weights", "kv", "verdict"),
    [
        ("0.11.0", {"gpu_memory_utilization": 0.95, "max_num_batched_tokens": 1024}, None, 1.71,
         "kv_too_small_for_max_len"),
        ("0.14.1", {"gpu_memory_utilization": 0.97, "max_num_seqs": 1, "max_model_len": 5120}, 64.38, None, "fits"),
    ],
)  # fmt: skip
def test_gpt_oss_on_hopper_by_kernel(
    version: str, flags: dict[str, object], weights: float | None, kv: float | None, verdict: str
) -> None:
    """Marlin until 0.12 ships Triton's kernels; until 0.25 those keep the scales as stored beside their own."""
    made = planned(find_model("openai/gpt-oss-120b").facts(), version, "H100", **flags)
    assert made.verdict == verdict
    assert weights is None or made.tightest.weights.value == pytest.approx(weights, abs=0.02)
    assert kv is None or made.tightest.kv_cache.value == pytest.approx(kv, abs=0.05)


def test_nccl_inside_graphs_wants_more_room_in_later_releases_too() -> None:
    """gpt-oss-120b on 8 x RTX PRO 4500 over PCIe died in 0.28 above a budget with 1.1 GiB left."""
    model = find_model("openai/gpt-oss-120b").facts()
    flags = {"tensor_parallel_size": 8, "gpu_memory_utilization": 0.95}
    assert planned(model, "0.28", "8xRTX PRO 4500", **flags).verdict == "unsafe_headroom"
    assert planned(model, "0.28", "8xRTX PRO 4500", **flags, enforce_eager=True).verdict == "fits"
    assert planned(model, "0.28", "8xH100", **flags).verdict == "fits"


@pytest.mark.parametrize(
    ("version", "gpus", "model", "flags", "blocks"),
    [
        ("0.22.0", "H100", "Qwen/Qwen3.6-27B-FP8", {"gpu_memory_utilization": 0.95}, 856),
        ("0.27.1", "RTX PRO 6000", "Qwen/Qwen3.8-27B-FP8",
         {"speculative_config": {"method": "mtp", "num_speculative_tokens": 1}}, 939),
        ("0.27.1", "RTX PRO 6000", "Qwen/Qwen3.8-27B",
         {"gpu_memory_utilization": 0.95, "speculative_config": {"method": "mtp", "num_speculative_tokens": 1}}, 556),
    ],
)  # fmt: skip
def test_every_sequence_of_a_recurrent_model_needs_a_block(
    version: str, gpus: str, model: str, flags: dict[str, object], blocks: int
) -> None:
    """Public reports: "max_num_seqs (1024) exceeds available Mamba cache blocks (856)", and so on."""
    facts = find_model(model).facts()
    made = planned(facts, version, gpus, **flags)
    assert made.verdict == "no_kv_blocks"
    assert made.capacity.num_blocks == pytest.approx(blocks, rel=0.03)
    assert planned(facts, version, gpus, **flags, max_num_seqs=blocks // 2).verdict == "fits"
    assert planned(facts, version, gpus, **flags, enforce_eager=True).verdict == "fits"
    assert planned(facts, "0.19.1", gpus, **flags).verdict == "fits"


@pytest.mark.parametrize(("ranks", "kv", "tokens"), [(2, 11.06, 622_408), (4, 15.72, None)])
def test_compiled_mtp_holds_one_tensor_beside_its_layer(ranks: int, kv: float, tokens: int | None) -> None:
    """Public logs of Qwen3.6-27B int4 on RTX 3090 with 0.20 and 0.21: the cache and its tokens as told."""
    model = find_model("Lorbus/Qwen3.6-27B-int4-AutoRound").facts()
    draft = {"method": "mtp", "num_speculative_tokens": 3}
    flags: dict[str, object] = {
        "dtype": "float16", "max_model_len": 262144, "quantization": "auto_round", "tensor_parallel_size": ranks,
        "disable_custom_all_reduce": True, "gpu_memory_utilization": 0.92, "kv_cache_dtype": "fp8_e5m2",
        "max_num_batched_tokens": 8192, "max_num_seqs": ranks, "speculative_config": draft,
        "enable_prefix_caching": True,
    }  # fmt: skip
    made = planned(model, "0.20.1", f"{ranks}xRTX 3090", **flags)
    assert made.tightest.kv_cache.value == pytest.approx(kv, rel=0.01)
    assert tokens is None or made.capacity.kv_cache_tokens == tokens


def test_v1_captures_every_size_whatever_the_sequences_before_0_12() -> None:
    """Qwen2.5-VL-72B on four A100 PCIe with two sequences and 0.8.4 ran out of memory (0.8.5 config.py)."""
    model = find_model("Qwen/Qwen2.5-VL-72B-Instruct").facts()
    flags: dict[str, object] = {
        "tensor_parallel_size": 4, "gpu_memory_utilization": 0.95, "max_num_seqs": 2, "max_model_len": 4096,
    }  # fmt: skip
    made = planned(model, "0.8.4", "4xA100-PCIE-40GB", **flags)
    assert made.settings.cudagraph_capture_sizes[-1] == 512
    assert made.settings.nccl_reduces, "bridges join pairs of these cards alone"
    assert made.verdict == "oom_cuda_graph"
    assert planned(config("qwen3-8b"), "0.7.3", "A100", max_num_seqs=20).settings.cudagraph_capture_sizes[-1] == 24


@pytest.mark.parametrize(("size", "refused"), [(7, True), (24, True), (16, False), (8, False), (1056, False)])
def test_block_sizes_that_no_kernel_takes(size: int, refused: bool) -> None:
    assert any(out_of_bounds(Given({"block_size": size}))) == refused


def test_each_layer_of_gemma_2_had_its_rotary_table_before_0_5_5() -> None:
    """A public start of 0.5.4 on 8 x L4 loaded 2.3463 GiB a rank and had 22,982 blocks."""
    model = find_model("google/gemma-2-9b-it").facts()
    old, new = (planned(model, v, "8xL4", tensor_parallel_size=8) for v in ("0.5.4", "0.5.5"))
    assert old.tightest.weights.value == pytest.approx(2.3463, rel=0.015)
    assert old.capacity.num_blocks == pytest.approx(22_982, rel=0.01)
    assert old.tightest.weights.value - new.tightest.weights.value == pytest.approx(41 * 4 / 1024, abs=0.001)
