"""Which rules exist: one line a rule, sorted by code. Retired codes stay listed and are never used again."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from trimtab.errors import UsageError
from trimtab.messages import msg
from trimtab.rules.rule import Rule, Subject

# code -> module under trimtab.rules
RULES: dict[str, str] = {
    "CMD001": "command.flag_unknown",
    "CMD002": "command.flag_removed",
    "CMD003": "command.flag_renamed",
    "CMD004": "command.flag_without_effect",
    "CMD005": "command.value_of_wrong_type",
    "CMD006": "command.value_not_among_choices",
    "CMD007": "command.flag_given_twice",
    "CMD008": "command.value_missing",
    "CMD009": "command.flag_deprecated",
    "CMD010": "command.flags_excluding_each_other",
    "CMD011": "command.flag_without_its_partner",
    "CMD012": "command.value_out_of_range",
    "CMD013": "command.positional_model_without_serve",
    "CMD014": "command.model_flag_with_serve",
    "CMD015": "command.demo_entry_point",
    "CMD016": "command.model_missing",
    "CMD017": "command.batched_tokens_below_context",
    "CMD018": "command.batched_tokens_below_sequences",
    "CMD019": "command.speculation_not_in_this_version",
    "CMD020": "command.dotted_argument_not_understood",
    "CMD021": "command.flag_newer_than_vllm",
    "CMD022": "command.load_format_without_quantisation",
    "CMD023": "command.configuration_key_unknown",
    "CMD024": "command.typographic_character",
    "CMD025": "command.partial_prefills_unsupported",
    "CMD026": "command.flag_refused_by_v1",
    "CMD027": "command.server_named_twice",
    "CMD101": "command.tensor_parallel_not_dividing_heads",
    "CMD102": "command.tensor_parallel_not_dividing_kv_heads",
    "CMD103": "command.tensor_parallel_cutting_quantisation_groups",
    "CMD104": "command.more_ranks_than_gpus",
    "CMD106": "command.expert_parallel_without_experts",
    "CMD107": "command.data_parallel_above_gpu_count",
    "CMD108": "command.prequantised_bitsandbytes_across_ranks",
    "CMD201": "command.bfloat16_below_capability_8",
    "CMD202": "command.dtype_float_is_float32",
    "CMD203": "command.quantisation_beyond_compute_capability",
    "CMD204": "command.kv_cache_dtype_beyond_compute_capability",
    "CMD205": "command.quantization_not_of_the_checkpoint",
    "CMD206": "command.bfloat16_on_amx_cpu",
    "CMD208": "command.float16_unsupported_by_model",
    "CMD209": "command.dtype_unsupported_by_quantisation",
    "CMD210": "command.cards_below_release",
    "CMD301": "command.context_beyond_model",
    "CMD302": "command.trust_remote_code_missing",
    "CMD303": "command.trust_remote_code_unneeded",
    "CMD304": "command.model_newer_than_vllm",
    "CMD306": "command.tool_call_parser_of_another_model",
    "CMD307": "command.reasoning_parser_of_another_model",
    "CMD308": "command.chat_template_missing",
    "CMD309": "command.embedding_model_without_pooling",
    "CMD310": "command.gguf_architecture_unsupported",
    "CMD401": "command.open_server_without_key",
    "CMD402": "command.key_on_the_command_line",
    "CMD403": "command.served_name_not_the_client_s",
    "CMD404": "command.loopback_in_container",
    "CMD405": "command.published_port_not_served",
    "CMD501": "command.oom_weights",
    "CMD502": "command.oom_profile",
    "CMD503": "command.no_kv_blocks",
    "CMD504": "command.kv_too_small_for_max_len",
    "CMD505": "command.oom_cuda_graph",
    "CMD506": "command.utilization_unsafe",
    "CMD507": "command.free_memory_below_utilization",
    "CMD508": "command.more_sequences_than_kv_blocks",
    "CMD509": "command.more_sequences_than_state_blocks",
    "CMD510": "command.batched_tokens_below_hybrid_block",
    "CMD511": "command.host_memory_below_swap_space",
    "CMD512": "command.prefix_shorter_than_hybrid_block",
    "CMD513": "command.batched_tokens_too_large",
    "CMD514": "command.cpu_offload_without_effect",
    "CMD601": "command.container_shm_too_small",
    "CMD602": "command.ipc_option_set_as_variable",
    "CMD603": "command.container_without_gpus",
    "CMD604": "command.image_tag_latest",
    "CMD701": "command.environment_variable_removed",
    "CMD702": "command.environment_variable_without_effect",
    "CMD703": "command.environment_variable_unknown",
    "CMD704": "command.device_uuid_not_understood",
    "CMD705": "command.service_named_vllm",
    "HST001": "host.free_gpu_memory_below_utilization",
    "HST002": "host.engine_process_left_over",
    "HST003": "host.driver_older_than_cuda_of_torch",
    "HST004": "host.nvidia_driver_not_answering",
    "HST005": "host.driver_and_its_library_differ",
    "HST006": "host.mig_card_without_slices",
    "HST007": "host.visible_devices_naming_no_card",
    "HST008": "host.gpu_memory_errors_uncorrected",
    "HST009": "host.gpu_awaiting_memory_repair",
    "HST010": "host.gpu_slowed_by_hardware",
    "HST011": "host.persistence_mode_off",
    "HST012": "host.fewer_gpus_than_ranks",
    "HST101": "host.host_memory_below_pinned",
    "HST102": "host.host_memory_below_cpu_engine",
    "HST103": "host.shared_memory_too_small",
    "HST104": "host.cores_below_engine_processes",
    "HST105": "host.memory_overcommit_refused",
    "HST106": "host.address_space_limited",
    "HST201": "host.disk_below_download",
    "HST202": "host.model_cache_not_writable",
    "HST203": "host.state_directory_unusable",
    "HST204": "host.temporary_directory_unusable",
    "HST205": "host.weights_are_lfs_pointers",
    "HST206": "host.hub_token_malformed",
    "HST207": "host.hub_offline_without_model",
    "HST208": "host.weights_on_network_filesystem",
    "HST209": "host.hub_token_missing",
    "HST301": "host.port_taken",
    "HST302": "host.proxy_catching_loopback",
    "HST303": "host.clock_behind",
    "HST304": "host.network_interface_absent",
    "HST305": "host.host_address_not_of_this_host",
    "HST306": "host.host_name_unresolved",
    "HST401": "host.open_files_limit_low",
    "HST402": "host.locked_memory_limited",
    "HST403": "host.core_dumps_unlimited",
    "HST404": "host.process_limit_near",
    "HST501": "host.wsl_host",
    "HST502": "host.processor_without_avx2",
    "HST503": "host.processor_without_avx512",
    "HST504": "host.library_path_of_another_cuda",
    "HST505": "host.torch_of_another_version",
    "HST506": "host.transformers_of_another_version",
    "LOG001": "log.memory_held_by_others",
    "LOG002": "log.utilization_above_idle_card",
    "LOG003": "log.out_of_memory_while_loading",
    "LOG004": "log.out_of_memory_in_profile_run",
    "LOG005": "log.out_of_memory_in_sampler_warmup",
    "LOG006": "log.out_of_memory_in_graph_capture",
    "LOG007": "log.out_of_memory_while_serving",
    "LOG008": "log.no_memory_left_for_kv_cache",
    "LOG009": "log.context_longer_than_kv_cache",
    "LOG010": "log.requests_preempted_again_and_again",
    "LOG011": "log.memory_changed_while_profiling",
    "LOG012": "log.state_blocks_below_sequences",
    "LOG020": "log.log_ends_in_profile_run",
    "LOG021": "log.log_ends_in_graph_capture",
    "LOG030": "log.host_memory_exhausted",
    "LOG031": "log.swap_space_above_host_memory",
    "LOG032": "log.swap_space_exhausted",
    "LOG033": "log.pinned_memory_refused",
    "LOG034": "log.shared_memory_exhausted",
    "LOG035": "log.disk_full",
    "LOG101": "log.tensor_parallel_not_dividing",
    "LOG102": "log.quantisation_group_cut_by_ranks",
    "LOG103": "log.more_ranks_than_gpus_seen",
    "LOG110": "log.capability_below_minimum",
    "LOG111": "log.bfloat16_not_on_this_card",
    "LOG112": "log.quantisation_not_on_this_card",
    "LOG113": "log.no_kernel_for_this_card",
    "LOG114": "log.attention_backend_not_for_this",
    "LOG115": "log.driver_older_than_cuda",
    "LOG116": "log.shared_library_missing",
    "LOG117": "log.kernel_build_at_run_time_failed",
    "LOG118": "log.torch_compile_failed",
    "LOG119": "log.no_gpu_seen",
    "LOG120": "log.container_without_gpu",
    "LOG121": "log.mig_device_not_understood",
    "LOG122": "log.illegal_memory_access",
    "LOG123": "log.cuda_library_refused",
    "LOG124": "log.card_failed",
    "LOG125": "log.fabric_manager_not_running",
    "LOG126": "log.operating_system_unsupported",
    "LOG140": "log.nccl_system_call_failed",
    "LOG141": "log.nccl_itself_failed",
    "LOG142": "log.collective_timed_out",
    "LOG143": "log.start_stands_still_in_nccl",
    "LOG144": "log.custom_all_reduce_failed",
    "LOG145": "log.ranks_never_meet",
    "LOG146": "log.ray_placement_group_too_small",
    "LOG147": "log.ray_waits_for_gpus",
    "LOG148": "log.ray_not_reached",
    "LOG149": "log.ray_worker_died",
    "LOG160": "log.killed_from_outside",
    "LOG161": "log.process_crashed",
    "LOG162": "log.engine_hangs",
    "LOG163": "log.start_waited_for_too_long",
    "LOG164": "log.engine_death_without_its_error",
    "LOG999": "log.failure_not_recognised",
}

# code -> why it went, and what took its place
RETIRED: dict[str, str] = {}


@cache
def rule(code: str) -> Rule:
    """The rule of `code`; its module is imported now."""
    found: Rule = import_module(f"trimtab.rules.{RULES[code]}").RULE
    return found


def rules(subject: Subject) -> list[Rule]:
    """All rules of one subject, by code."""
    return [rule(code) for code in RULES if code.startswith(subject.value)]


def is_name(word: str) -> bool:
    """Whether a rule has this name, with dashes."""
    return any(module.rpartition(".")[2].replace("_", "-") == word for module in RULES.values())


def find(code_or_name: str) -> Rule:
    """The rule with this code or name. UsageError naming the nearest when there is none."""
    wanted = code_or_name.strip()
    if wanted.upper() in RULES:
        return rule(wanted.upper())
    if wanted.upper() in RETIRED:
        raise UsageError(msg("rule {code} is retired: {why}", code=wanted.upper(), why=RETIRED[wanted.upper()]))
    for code, module in RULES.items():
        if module.rpartition(".")[2] == wanted.replace("-", "_"):
            return rule(code)
    from difflib import get_close_matches

    names = [m.rpartition(".")[2].replace("_", "-") for m in RULES.values()]
    near = get_close_matches(wanted.lower(), names, 1) or get_close_matches(wanted.upper(), RULES, 1)
    hint = msg("Did you mean {near}?", near=near[0]) if near else msg("`trimtab explain` lists the groups.")
    raise UsageError(msg("no rule is called {wanted}", wanted=wanted), hint=hint)
