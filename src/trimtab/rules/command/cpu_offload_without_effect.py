"""The model runner of this launch does not know --cpu-offload-gb: all weights stay on the card.

What it does: looks whether vLLM 0.22 to 0.27 takes its V2 model runner for the model.
Why it matters: the flag is taken without a word, nothing is offloaded, and the launch runs out of memory as without it.
How to fix: use vLLM 0.28 or newer, or set VLLM_USE_V2_MODEL_RUNNER=0.
When to ignore: never with these versions; name the version you run with --vllm when it was only assumed.
Sources: vllm/v1/worker/gpu/model_runner.py, vllm/v1/worker/gpu_model_runner.py (`create_offloader`) and
    vllm/config/vllm.py (`use_v2_model_runner`) of vLLM 0.22 to 0.28.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    use = context.command.last("cpu-offload-gb")
    if use is None or not words.serves(context) or not _offloads(use.value) or context.on_cpu:
        return
    if not _takes_v2(context):
        return
    yield Finding(
        msg(
            "the V2 model runner, which {vllm} takes for this model, ignores {flag}: all weights stay on the card; "
            "VLLM_USE_V2_MODEL_RUNNER=0 or vLLM 0.28 offloads them",
            zh="{vllm} 对该模型使用 V2 model runner，它会忽略 {flag}：权重全部留在显卡上；"
            "设 VLLM_USE_V2_MODEL_RUNNER=0 或使用 vLLM 0.28 才会卸载",
            vllm=words.vllm(context),
            flag=use.spelling,
        ),
        use.span,
    )


def _offloads(text: str | None) -> bool:
    try:
        return float(text or "") > 0
    except ValueError:
        return False


def _takes_v2(context: CommandContext) -> bool:
    asked = context.env("VLLM_USE_V2_MODEL_RUNNER")
    if asked in ("0", "1"):
        return asked == "1"
    if any("V2 runner" in spec.unsupported for _, spec in words.known_flags(context)):
        return False  # it may be the reason why V1's runner is taken
    case = context.shape
    return case is not None and case.budget().settings.runner == "v2"


RULE = Rule(
    code="CMD514",
    name="cpu-offload-without-effect",
    severity=Severity.WARNING,
    summary=msg(
        "The model runner of this launch ignores --cpu-offload-gb.",
        zh="这次启动所用的 model runner 会忽略 --cpu-offload-gb。",
    ),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/config/vllm.py",
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/gpu/model_runner.py",
        "https://github.com/vllm-project/vllm/blob/v0.28.0/vllm/v1/worker/gpu/model_runner.py",
    ),
    since="0.22",  # the first version that may take the V2 runner
    until="0.27",  # the last whose V2 runner makes no offloader
    bad=(
        Example("vllm serve m --cpu-offload-gb 4\n", at="--cpu-offload-gb 4", vllm="0.26", model="qwen2.5-7b"),
        Example(
            "VLLM_USE_V2_MODEL_RUNNER=1 vllm serve m --cpu-offload-gb 4\n",
            at="--cpu-offload-gb 4",
            vllm="0.24",
            model="qwen2.5-7b",
        ),
    ),
    good=(
        Example("vllm serve m --cpu-offload-gb 4\n", vllm="0.28", model="qwen2.5-7b"),
        Example("vllm serve m --cpu-offload-gb 4\n", vllm="0.21", model="qwen2.5-7b"),
        Example("VLLM_USE_V2_MODEL_RUNNER=0 vllm serve m --cpu-offload-gb 4\n", vllm="0.26", model="qwen2.5-7b"),
        Example("vllm serve m --cpu-offload-gb 4 --kv-sharing-fast-prefill\n", vllm="0.26", model="qwen2.5-7b"),
        Example("vllm serve m --cpu-offload-gb 0\n", vllm="0.26", model="qwen2.5-7b"),
    ),
)
