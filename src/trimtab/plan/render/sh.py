"""A shell script in the article's form: variables on top, one command, so that another model or card changes
variables only."""

from __future__ import annotations

from trimtab.plan.render.launch import Launch
from trimtab.plan.render.shelltext import command_lines, exports, flag_words, quote, script

VARIABLES = {
    "served-model-name": "SERVED_NAME",
    "tensor-parallel-size": "TP_SIZE",
    "pipeline-parallel-size": "PP_SIZE",
    "gpu-memory-utilization": "GPU_UTIL",
    "max-model-len": "MAX_LEN",
    "max-num-seqs": "MAX_SEQS",
    "max-num-batched-tokens": "MAX_BATCHED_TOKENS",
    "dtype": "DTYPE",
    "kv-cache-dtype": "KV_CACHE_DTYPE",
    "port": "PORT",
}
"""Flag -> the variable that holds its value."""


def render(launch: Launch) -> str:
    """The script; it becomes vLLM (`exec`), so that a signal to it reaches the server."""
    variables, flags = variables_and_flags(launch)
    return script(
        f"{launch.about} Another model or card: change the variables.",
        variables,
        exports(launch.env),
        [command_lines(f"exec {serve(launch)}", flags)],
    )


def serve(launch: Launch) -> str:
    """The beginning of the command."""
    return f'{quote(launch.program or "vllm")} serve "$MODEL_PATH"'


def variables_and_flags(launch: Launch) -> tuple[list[str], list[str]]:
    """Assignments for the top of a script, and the flags that use them; a flag given twice stays as it is."""
    variables, flags = [f"MODEL_PATH={quote(launch.model)}"], []
    for flag in launch.flags:
        name = VARIABLES.get(flag.dotted)
        if name is None or flag.value is None or len(launch.command.all(flag.dotted)) > 1 or len(flag.values) > 1:
            flags.append(flag_words(flag))
        else:
            variables.append(f"{name}={quote(flag.value)}")
            flags.append(flag_words(flag, name))
    return variables, flags
