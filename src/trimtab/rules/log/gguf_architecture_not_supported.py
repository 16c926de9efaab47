"""The GGUF file's architecture or tensors are not known here.

What it does: reads the refusal of Transformers, through which vLLM reads a GGUF file's configuration, and of vLLM's
    own map of tensors.
Why it matters: an architecture needs a map in three places, Transformers, the gguf package and vLLM; new models lack
    it for months.
How to fix: serve the safetensors checkpoint instead (quantised: AWQ, GPTQ, FP8), or the GGUF file with llama.cpp;
    give --tokenizer and --hf-config-path of the original model where only the configuration is not read.
When to ignore: never; the file was not loaded.
Sources: transformers/modeling_gguf_pytorch_utils.py; vllm/model_executor/model_loader/gguf_loader.py, vLLM 0.5 to
    0.23.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"GGUF model with architecture (?P<name>\S+) is not supported",
    r"Unknown gguf model_type:? (?P<name>\S+)",
    r"Failed to map GGUF parameters",
    r"^ValueError: Architecture (?P<name>[\w.-]+) not supported$",
    r"Can't get gguf config for (?P<name>\S+?)\.?$",
    r"[Aa]rchitecture (?P<name>\S+) (?:is )?not supported.{0,40}(?:gguf|GGUF)",
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS))
    if found is not None:
        hit, confidence = found
        message = msg(
            "the GGUF file cannot be read as a model here: {said}",
            zh="此处无法把该 GGUF 文件当作模型读取：{said}",
            said=words.said(hit),
        )
        yield context.finding(hit, message, confidence)


RULE = Rule(
    code="LOG501",
    name="gguf-architecture-not-supported",
    severity=Severity.ERROR,
    summary=msg(
        "The GGUF file's architecture or tensors are not known here.", zh="此版本不认识 GGUF 文件的架构或张量。"
    ),
    check=check,
    cause=Cause.GGUF_ARCHITECTURE_UNSUPPORTED,
    sources=("https://github.com/vllm-project/vllm/blob/v0.20.0/vllm/model_executor/model_loader/gguf_loader.py",),
    bad=(
        Example("ValueError: GGUF model with architecture deepseek2 is not supported yet.\n"),
        Example("RuntimeError: Unknown gguf model_type: nosuch\n"),
        Example("RuntimeError: Failed to map GGUF parameters (411): ['blk.0.x']\n"),
    ),
    good=(Example("INFO 11-30 03:43:16 [gguf_loader.py:1] load_format=gguf\n"),),
)
