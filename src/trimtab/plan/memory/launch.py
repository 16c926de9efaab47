"""What a launch command says of memory: its flags and environment as typed values (Given)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from math import isfinite

from trimtab.engine.abbreviated import completed
from trimtab.engine.command import FlagUse, LaunchCommand
from trimtab.engine.quantities import whole, wrong_value
from trimtab.plan.memory.given import Given

WHOLE = (
    "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "data_parallel_size_local",
    "decode_context_parallel_size", "prefill_context_parallel_size",
    "max_model_len", "max_num_seqs", "max_num_batched_tokens", "block_size", "kv_cache_memory_bytes",
    "num_gpu_blocks_override", "max_loras", "max_lora_rank", "mamba_block_size",
)  # fmt: skip
REAL = ("gpu_memory_utilization", "cpu_offload_gb", "swap_space", "kv_offloading_size")
TEXT = (
    "dtype", "kv_cache_dtype", "quantization", "mamba_cache_mode", "mamba_ssm_cache_dtype", "logits_processors",
)  # fmt: skip
SWITCHES = (
    "enforce_eager", "enable_chunked_prefill", "enable_prefix_caching", "enable_expert_parallel", "enable_lora",
    "language_model_only", "skip_mm_profiling", "disable_hybrid_kv_cache_manager", "async_scheduling",
    "enable_dbo", "kv_sharing_fast_prefill", "enable_prompt_embeds",
)  # fmt: skip
FROM_COMPILATION = ("cudagraph_mode", "cudagraph_capture_sizes")


def given_of(command: LaunchCommand) -> Given:
    """The flags that decide memory. UsageError: a value that is no number, or JSON that is none."""
    command = completed(command)
    flags: dict[str, object] = {}
    for name in WHOLE:
        _put(flags, name, command, whole)
    for name in REAL:
        _put(flags, name, command, _real)
    for name in TEXT:
        _put(flags, name, command, lambda _, text: text)
    for name in SWITCHES:
        use = command.last(name.replace("_", "-"))
        if use is not None:
            flags[name] = not use.negated and use.value not in ("false", "False")
    _compilation(flags, command)
    speculative = speculation_of(command)
    if speculative:
        flags["speculative_config"] = speculative
    limits = command.last("limit-mm-per-prompt")
    if limits is not None and limits.value and limits.value.lstrip().startswith("{"):
        counts = _object("limit_mm_per_prompt", limits.value).values()
        flags["skip_mm_profiling"] = all(n == 0 for n in counts) or flags.get("skip_mm_profiling", False)
    env = {name: use.value for name, use in command.env.items() if use.value is not None}
    return Given(flags, env, "server")


SPECULATIVE = {
    "method": ("speculative-config.method", "spec-method"),
    "model": ("speculative-config.model", "spec-model", "speculative-model"),
    "num_speculative_tokens": ("speculative-config.num_speculative_tokens", "spec-tokens", "num-speculative-tokens"),
    "draft_tensor_parallel_size": (
        "speculative-config.draft_tensor_parallel_size", "speculative-draft-tensor-parallel-size",
    ),
}  # fmt: skip
"""Keys of the speculative configuration and the flags that also give them; the last of a row are those before 0.8."""


def speculation_of(command: LaunchCommand) -> Mapping[str, object]:
    """The speculative configuration, as JSON, dotted or by flags of its own; empty where the command has none."""
    use = command.last("speculative-config")
    found = dict(_object("speculative_config", use.value)) if use is not None and use.value else {}
    for key, names in SPECULATIVE.items():
        text = next((v for name in names if (v := command.get(name)) is not None), None)
        if text is not None:
            found[key] = whole(key, text) if key.endswith(("tokens", "size")) else text
    return found


def _real(name: str, text: str) -> float:
    try:
        found = float(text)
    except ValueError as error:
        raise wrong_value(name, text) from error
    if not isfinite(found):
        raise wrong_value(name, text)
    return found


def _put(flags: dict[str, object], name: str, command: LaunchCommand, read: Callable[[str, str], object]) -> None:
    use = command.last(name.replace("_", "-"))
    if use is None or use.value is None or use.unknown:
        return
    value = read(name, use.value)
    if value is not None:
        flags[name] = value


def _compilation(flags: dict[str, object], command: LaunchCommand) -> None:
    """Graph settings, whether given as JSON, dotted, or as flags of their own (later releases)."""
    use = command.last("compilation-config")
    config: Mapping[str, object] = {}
    if use is not None and use.value and use.value.lstrip().startswith("{"):
        config = _object("compilation_config", use.value)
    for name in FROM_COMPILATION:
        if name in config:
            flags[name] = config[name]
        dotted = command.last(f"compilation-config.{name}") or command.last(name.replace("_", "-"))
        if dotted is not None and dotted.value:
            flags[name] = _numbers(dotted) if name == "cudagraph_capture_sizes" else dotted.value


def _numbers(use: FlagUse) -> list[int]:
    return [int(n) for n in re.findall(r"\d{1,18}", use.value or "")]


def _object(name: str, text: str) -> Mapping[str, object]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise wrong_value(name, text) from error
    if not isinstance(found, dict):
        raise wrong_value(name, text)
    return found
