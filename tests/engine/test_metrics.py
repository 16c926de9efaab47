"""Prometheus text as vLLM 0.2 to 0.33 writes it."""

from __future__ import annotations

import pytest

from trimtab.engine.metrics import EngineMetrics, Sample, read_engine, read_samples

V0_32 = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
process_start_time_seconds 1.79602340e+09
vllm:num_requests_running{engine="0",model_name="demo"} 1.0
vllm:num_requests_waiting{engine="0",model_name="demo"} 2.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="demo",reason="capacity"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="demo"} 0.5
vllm:num_preemptions_total{engine="0",model_name="demo"} 3.0
vllm:num_preemptions_created{engine="0",model_name="demo"} 1.796023428175729e+09
vllm:request_success_total{engine="0",finished_reason="stop",model_name="demo"} 4.0
vllm:request_success_total{engine="0",finished_reason="error",model_name="demo"} 1.0
vllm:cache_config_info{gpu_memory_utilization="0.92",block_size="128",kv_cache_size_tokens="46592",num_gpu_blocks="9"} 1
"""
V0_6 = """\
vllm:num_requests_running{model_name="m"} 0.0
vllm:gpu_cache_usage_perc{model_name="m"} 0.25
vllm:num_preemptions_total{model_name="m"} 0.0
vllm:request_success_total{finished_reason="stop",model_name="m"} 7.0
vllm:cache_config_info{block_size="16",cache_dtype="auto",num_cpu_blocks="0",num_gpu_blocks="None"} 1.0
"""
V0_2 = "vllm:num_requests_running 0.0\nvllm:gpu_cache_usage_perc 0.1\n"


def read(text: str) -> EngineMetrics:
    found = read_engine(read_samples(text))
    assert found is not None
    return found


def test_v1() -> None:
    assert read(V0_32) == EngineMetrics(
        preemptions=3, finished=5, failed=1, running=1, waiting=2, kv_usage=0.5, started_at_s=1.7960234e9,
        memory_utilization=0.92, kv_blocks=9, kv_tokens=46592, block_tokens=128,
    )  # fmt: skip


def test_v0() -> None:
    found = read(V0_6)
    assert (found.preemptions, found.finished, found.failed, found.kv_usage) == (0, 7, None, 0.25)
    assert (found.kv_blocks, found.kv_tokens, found.block_tokens) == (None, None, 16)


def test_the_oldest_says_little() -> None:
    found = read(V0_2)
    assert (found.running, found.kv_usage, found.preemptions) == (0, 0.1, None)


def test_tokens_are_blocks_times_their_size_where_not_told() -> None:
    assert read('vllm:cache_config_info{block_size="16",num_gpu_blocks="100"} 1').kv_tokens == 1600


def test_engines_are_summed_and_the_fullest_counts() -> None:
    text = "".join(
        f'vllm:num_preemptions_total{{engine="{n}"}} {n}\nvllm:kv_cache_usage_perc{{engine="{n}"}} 0.{n}\n'
        for n in range(4)
    )
    assert (read(text).preemptions, read(text).kv_usage) == (6, 0.3)


def test_other_servers_and_pages_are_not_vllm() -> None:
    assert read_engine(read_samples("python_info 1\nsglang:num_running_reqs 0\n")) is None
    assert read_engine(read_samples("<html>vllm:num 1</html>")) is None


@pytest.mark.parametrize(
    ("line", "sample"),
    [
        (r'a{b="x,}\"\\\n y"} 1', Sample("a", {"b": 'x,}"\\\n y'}, 1.0)),
        ("a 1.5e3 1700000000000", Sample("a", {}, 1500.0)),
        ("a{} +Inf", Sample("a", {}, float("inf"))),
    ],
)
def test_lines(line: str, sample: Sample) -> None:
    assert read_samples(line) == [sample]


@pytest.mark.parametrize("line", ["", "# TYPE a counter", "a", "a b", "{} 1"])
def test_what_is_no_sample(line: str) -> None:
    assert read_samples(line) == []
