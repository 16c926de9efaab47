"""torch.compile itself failed.

What it does: recognises Dynamo's, Inductor's and Triton's own exceptions, where compilers are there and memory is not
    short.
Why it matters: vLLM compiles the model at its start by default (V1). A cached artefact of another version, or a
    pattern that Inductor does not know, stops it.
How to fix: remove ~/.cache/vllm/torch_compile_cache and try again; --compilation-config '{"mode": 0}' or
    --enforce-eager start without compiling, and decode more slowly.
When to ignore: never, where it stopped the start.
Sources: torch/_dynamo/exc.py, torch/_inductor/exc.py; vllm/compilation, vLLM 0.26.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import LIKELY, LogContext
from trimtab.rules.log.fixes import set_flag
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"torch\._dynamo\.exc\.|torch\._inductor\.exc\.|BackendCompilerFailed|InductorError|LoweringException|CompilationError|torch_compile_cache.*(?:corrupt|fail|Error)"
        r"torch\._dynamo\.exc\.|torch\._inductor\.exc\.|BackendCompilerFailed|InductorError|LoweringException|CompilationError|torch_compile_cache.*(?:corrupt|fail|Error)"
    )
    if hit is None:
        return
    yield context.finding(
        hit,
        msg(
            "torch.compile failed: remove ~/.cache/vllm/torch_compile_cache and try again; --enforce-eager "
            "starts without it",
            zh="torch.compile 失败：请删除 ~/.cache/vllm/torch_compile_cache 后重试；--enforce-eager 可以不经编译启动",
        ),
        LIKELY,
        fix=set_flag(context, "enforce-eager", None),
    )


RULE = Rule(
    code="LOG118",
    name="torch-compile-failed",
    severity=Severity.ERROR,
    summary=msg("torch.compile itself failed.", zh="torch.compile 编译失败。"),
    check=check,
    cause=Cause.TORCH_COMPILE_FAILED,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/compilation/backends.py",),
    bad=(
        Example(
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:1] vLLM API server version 0.26.0\n"
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:2] non-default args: {'model': "
            "'HuggingFaceTB/SmolLM2-1.7B-Instruct'}\n"
            "(EngineCore pid=7) ERROR 11-30 03:43:16 [core.py:9] torch._inductor.exc.InductorError: "
            "LoweringException: AssertionError: n=3\n",
            at="line 3: torch._inductor",
            fixed="vllm serve HuggingFaceTB/SmolLM2-1.7B-Instruct --enforce-eager",
        ),
    ),
    good=(
        Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),
        Example("INFO 11-30 03:43:16 [backends.py:1] torch.compile takes 12.3 s in total\n"),
    ),
)
