"""The names of vLLM's own metrics, by release; nothing is read here.

Read in vLLM's sources: vllm/engine/metrics.py (0.2.5 to 0.11) and vllm/v1/metrics/loggers.py (0.7.3 to 0.33). Where a
release has two names for one thing (0.9 to 0.11), the first one counts. prometheus_client appends `_total` to a
counter's name and `_sum`, `_count` and `_bucket` to a histogram's.
"""

from __future__ import annotations

RUNNING = ("vllm:num_requests_running",)
WAITING = ("vllm:num_requests_waiting",)
KV_USAGE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
PREEMPTIONS = ("vllm:num_preemptions_total", "vllm:num_preemptions")  # 0.4.3 and later
FINISHED = ("vllm:request_success_total", "vllm:request_success")
GENERATED = ("vllm:generation_tokens_total",)  # 0.4.2 and later
PROMPTED = ("vllm:prompt_tokens_total",)
STEPS = ("vllm:iteration_tokens_total_count",)  # 0.6.4 and later
HITS = ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total")  # V1, in tokens
QUERIES = ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total")
HIT_RATE = ("vllm:gpu_prefix_cache_hit_rate",)  # V0 only; below 0 until there is one
PREFILL_S = ("vllm:request_prefill_time_seconds_sum",)
DECODE_S = ("vllm:request_decode_time_seconds_sum",)
PROMPT_SIZES = "vllm:request_prompt_tokens_bucket"
CACHE_CONFIG = "vllm:cache_config_info"
STARTED = ("process_start_time_seconds",)
