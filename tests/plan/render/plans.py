"""Plans that the forms are tested with: plain ones, and names and values that break careless quoting."""

from __future__ import annotations

from msgspec.structs import replace

from tests.plan.models import QWEN_7B, QWEN_72B
from trimtab.facts.gpu import cpu, parse_gpus
from trimtab.facts.model import read_model
from trimtab.plan.memory.card import cards_of
from trimtab.plan.planner import Plan, Task, Wish, plan

TINY = {**QWEN_7B, "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4}


def planned(config: dict[str, object], gpus: str, path: str, name: str, version: str, **pinned: object) -> Plan:
    """The plan of 4 requests of 8,192 tokens."""
    cards = cards_of(cpu(64.0) if gpus == "cpu" else parse_gpus(gpus))
    task = Task(path, name, read_model(config), cards, version, {})
    made = plan(replace(task, pinned=pinned), Wish(8192, 4))
    assert made.fits
    return made


PLANS = {
    "hub-id": planned(QWEN_7B, "A100-80", "Qwen/Qwen2.5-7B-Instruct", "Qwen2.5-7B-Instruct", "0.33"),
    "four-cards": planned(QWEN_72B, "4xA100-40", "/models/Qwen2.5-72B", "qwen", "0.26", trust_remote_code=True),
    "old-entry-point": planned(QWEN_7B, "A100-80", "Qwen/Qwen2.5-7B-Instruct", "qwen", "0.8.5"),
    "v100": planned(QWEN_72B, "8xV100-32", "/models/Qwen2.5-72B", "qwen", "0.9.2"),
    "cpu": planned(TINY, "cpu", "/models/tiny", "tiny", "0.32"),
    "amd": planned(QWEN_72B, "MI300X", "/models/Qwen2.5-72B", "qwen", "0.26"),
    "hub-port": planned(QWEN_7B, "A100-80", "Qwen/Q", "q", "0.33", port=9000, max_num_batched_tokens=4096),
    "in-claim": planned(QWEN_72B, "4xA100-40", "/data/qwen", "qwen", "0.33", enable_prefix_caching=False),
    "hub-hard-name": planned(QWEN_72B, "4xA100-40", "Qwen/Q", "$(A) {{ b }} yes", "0.33", trust_remote_code=True),
    "hard-path": planned(TINY, "A10", """/mnt/it's a "Qwen", 模型 #1 \\o/ & $HOME %i `x`""", "模型 1", "0.33"),
    "colon-path": planned(TINY, "A10", "/models/a: b", "m", "0.33"),
    "references": planned(TINY, "A10", "/m/$(POD) ${X} $$ %%h {{ .Values }}", "$(LWS_GROUP_SIZE)", "0.33"),
    **{
        f"yaml-{word}": planned(TINY, "A10", "/m/a", word, "0.33")
        for word in ("yes", "null", "0x10", "1e3", "007", "2026-01-01", "~", "a: b #c", "*a", "[x]", "-", "1_000")
    },
    "json-value": planned(TINY, "A10", "/m/a", "m", "0.33",
                          compilation_config='{"mode": 3, "cudagraph_capture_sizes": [1, 2]}',
                          limit_mm_per_prompt='{"image": 0}'),
    "switches": planned(TINY, "A10", "/m/a", "m", "0.33", enable_prefix_caching=False, enforce_eager=True,
                        enable_expert_parallel=True, kv_cache_dtype="fp8", port=9000),
    "dash-value": planned(TINY, "A10", "/m/a", "-x y", "0.33"),
}  # fmt: skip
"""By name; all on one machine."""
OLD_AMD = planned(QWEN_72B, "MI300X", "/models/Qwen2.5-72B", "qwen", "0.15")
OLD_CPU = planned(TINY, "cpu", "/models/tiny", "tiny", "0.17")
RELATIVE = planned(TINY, "A10", "./models/m", "m", "0.33")
TWO_MACHINES = planned(QWEN_72B, "16xA10", "/models/Qwen2.5-72B", "qwen", "0.33", tensor_parallel_size=8,
                       pipeline_parallel_size=2)  # fmt: skip
