"""The model's directory holds no configuration, or no weights that vLLM loads.

What it does: looks for config.json (or Mistral's params.json) and for safetensors, .bin, .pt or GGUF files.
Why it matters: vLLM ends at once, with a message about model types or a missing file that names neither the directory
    nor what should be in it.
How to fix: name the directory that holds the files (of a hub's cache: snapshots/<commit>), or finish the download.
When to ignore: the weights come from elsewhere than this directory.
Sources: vLLM 0.33 vllm/transformers_utils/config.py (get_config), vllm/model_executor/model_loader/default_loader.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    wanted = context.record.wanted
    if wanted.absent:
        yield Finding(
            msg(
                "{model} holds no {absent}: name the directory of the model itself, or finish its download",
                zh="{model} 中没有 {absent}：请指定模型文件所在的目录，或完成下载",
                model=wanted.model,
                absent=", ".join(wanted.absent),
            )
        )


RULE = Rule(
    code="HST210",
    name="model-directory-incomplete",
    severity=Severity.ERROR,
    summary=msg(
        "The model's directory holds no configuration, or no weights that vLLM loads.",
        zh="模型目录中没有配置文件，或没有 vLLM 能加载的权重。",
    ),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/main/vllm/transformers_utils/config.py",
        "https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/model_loader/default_loader.py",
    ),
    bad=(
        Example(
            '{"wanted": {"model": "./my-model", "absent": ["config.json", "weights (*.safetensors, *.bin, *.pt)"]}}\n'
        ),
    ),
    good=(
        Example(
            '{"wanted": {"model": "./my-model", "weights_bytes": 269060552}}\n',
        ),
    ),
)
