"""One look at /metrics under the names of each version; what a version does not say is absent, never 0."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from trimtab.engine.vitals import Progress, Vitals, longest_finished, read_progress, read_vitals

V1 = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="demo"} 3.0
vllm:num_requests_running{engine="1",model_name="demo"} 2.0
vllm:num_requests_waiting{engine="0",model_name="demo"} 4.0
vllm:num_requests_waiting{engine="1",model_name="demo"} 0.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="demo",reason="capacity"} 4.0
vllm:kv_cache_usage_perc{engine="0",model_name="demo"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="demo"} 0.75
vllm:num_preemptions_total{engine="0",model_name="demo"} 7.0
vllm:num_preemptions_created{engine="0",model_name="demo"} 1.796023428175729e+09
vllm:request_success_total{engine="0",finished_reason="stop",model_name="demo"} 4.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="demo"} 5.0
vllm:generation_tokens_total{engine="0",model_name="demo"} 1.25e+06
vllm:prompt_tokens_total{engine="0",model_name="demo"} 900.0
vllm:prefix_cache_queries_total{engine="0",model_name="demo"} 1000.0
vllm:prefix_cache_hits_total{engine="0",model_name="demo"} 250.0
vllm:iteration_tokens_total_count{engine="0",model_name="demo"} 41.0
vllm:request_prefill_time_seconds_sum{engine="0",model_name="demo"} 1.5
vllm:request_decode_time_seconds_sum{engine="0",model_name="demo"} 4.5
vllm:request_prompt_tokens_bucket{engine="0",le="1000.0",model_name="demo"} 8.0
vllm:request_prompt_tokens_bucket{engine="0",le="2000.0",model_name="demo"} 9.0
vllm:request_prompt_tokens_bucket{engine="0",le="+Inf",model_name="demo"} 9.0
vllm:cache_config_info{block_size="128",gpu_memory_utilization="0.92",kv_cache_size_tokens="46592",num_gpu_blocks="9"} 1
process_start_time_seconds 1.79602340e+09
"""
V0_11 = """\
vllm:num_requests_running{model_name="m"} 1.0
vllm:gpu_cache_usage_perc{model_name="m"} 0.9
vllm:kv_cache_usage_perc{model_name="m"} 0.5
vllm:gpu_prefix_cache_queries_total{model_name="m"} 100.0
vllm:gpu_prefix_cache_hits_total{model_name="m"} 50.0
vllm:prefix_cache_queries_total{model_name="m"} 100.0
vllm:prefix_cache_hits_total{model_name="m"} 50.0
"""
V0_6 = """\
vllm:num_requests_running{model_name="m"} 0.0
vllm:num_requests_swapped{model_name="m"} 0.0
vllm:gpu_cache_usage_perc{model_name="m"} 0.25
vllm:gpu_prefix_cache_hit_rate{model_name="m"} -1.0
vllm:cache_config_info{block_size="16",cache_dtype="auto",num_cpu_blocks="0",num_gpu_blocks="100"} 1.0
"""
V0_2 = "vllm:num_requests_running 0.0\r\nvllm:gpu_cache_usage_perc 0.1\r\n"


def read(text: str) -> Vitals:
    found = read_vitals(text.encode())
    assert found is not None
    return found


def test_v1_over_its_engines() -> None:
    assert read(V1) == Vitals(
        running=5, waiting=4, kv_usage=0.75, preemptions=7, finished=9, generated=1_250_000, prompted=900, steps=41,
        hits=250, queries=1000, prefilled_s=1.5, decoded_s=4.5, kv_tokens=46592, started_at_s=1.7960234e9,
        prompts=((1000.0, 8.0), (2000.0, 9.0), (float("inf"), 9.0)),
    )  # fmt: skip


def test_where_a_release_has_two_names_one_counts() -> None:
    found = read(V0_11)
    assert (found.kv_usage, found.queries, found.hits) == (0.5, 100, 50)


def test_v0_and_what_it_does_not_say() -> None:
    found = read(V0_6)
    assert found == Vitals(running=0, kv_usage=0.25, kv_tokens=1600)
    assert read(V0_6.replace("-1.0", "0.5")).hit_rate == 0.5


def test_the_oldest_without_labels() -> None:
    assert read(V0_2) == Vitals(running=0, kv_usage=0.1)


@pytest.mark.parametrize("body", [b"", b"<html>no</html>", b"python_info 1\n", b"\xff\x00{", b"vllm:num_requests_runn"])
def test_what_is_not_vllm_is_none(body: bytes) -> None:
    assert read_vitals(body) is None


def test_a_body_that_is_cut_off_and_numbers_that_are_none() -> None:
    assert read(V1[:400]).kv_usage is None
    assert read("vllm:num_requests_running 1\nvllm:num_requests_waiting NaN\nvllm:kv_cache_usage_perc x\n") == Vitals(
        running=1
    )


def test_progress_holds_what_moves_while_an_engine_works() -> None:
    found = read_progress(V1.encode())
    assert found == Progress(5, 4, (1_250_000.0, 900.0, 41.0, 0.25, 0.75, 7.0, 4.0, 5.0))
    assert read_progress(V1.replace("} 41.0", "} 42.0").encode()) != found
    assert read_progress(V1.replace("sum{", "sums{").replace("hits", "hit").encode()) == found


def test_progress_of_an_engine_that_counts_little_or_nothing() -> None:
    assert read_progress(V0_2.encode()) == Progress(0, 0, (0.1,))
    assert read_progress(b"python_info 1\n") is None
    nan = V0_2.replace("0.1", "NaN").encode()  # is unequal to itself, and would look like work
    assert read_progress(nan) == read_progress(nan) == Progress(0, 0, ())


def test_the_longest_prompt_is_the_bound_of_its_bucket() -> None:
    before = read(V1)
    assert longest_finished(before, before) is None
    two_more = V1.replace('"2000.0",model_name="demo"} 9.0', '"2000.0",model_name="demo"} 10.0').replace(
        '"+Inf",model_name="demo"} 9.0', '"+Inf",model_name="demo"} 10.0'
    )
    assert longest_finished(before, read(two_more)) == 2000
    beyond = V1.replace('"+Inf",model_name="demo"} 9.0', '"+Inf",model_name="demo"} 10.0')
    assert longest_finished(before, read(beyond)) is None
    assert longest_finished(read(V0_6), read(V0_6)) is None


def test_a_large_body_stays_cheap() -> None:
    lines = "".join(f'vllm:h_bucket{{engine="{n % 8}",le="{n}.0",model_name="demo"}} 1.0\n' for n in range(20_000))
    body = (lines + V1).encode()
    begun = time.thread_time()
    assert read_vitals(body) == read(V1)
    assert time.thread_time() - begun < 0.25  # about 15 ms on an idle core, for 1.2 MB


def test_the_words_of_a_real_server() -> None:
    """vLLM 0.32.0 on a CPU, after its first request (31 tokens in, 1 out)."""
    found = read((Path(__file__).parents[1] / "fixtures" / "metrics" / "cpu-0.32.txt").read_text(encoding="utf-8"))
    assert (found.running, found.waiting, found.kv_usage, found.preemptions) == (0, 0, 0.0, 0)
    assert (found.finished, found.generated, found.prompted, found.steps) == (1, 1, 31, 1)
    assert (found.hits, found.queries, found.hit_rate, found.kv_tokens) == (0, 31, None, 46592)
    assert found.prefilled_s is not None
    assert found.decoded_s is not None
    assert longest_finished(Vitals(), found) == 50
