"""The process sees no GPU.

What it does: recognises vLLM's, PyTorch's and NVML's words on it, outside of what a container runtime says.
Why it matters: PyPI's wheel is the CUDA build: on a host without a visible GPU no platform is found ("Failed to infer
    device type"). A driver that is not loaded, an empty CUDA_VISIBLE_DEVICES or missing permission on /dev/nvidia*
    look alike.
How to fix: run nvidia-smi as the same user at the same place. On a host without a card install the CPU build (trimtab
    engine install cpu).
When to ignore: never; the server cannot work like this.
Sources: vllm/config/device.py, vLLM 0.26; vllm/config.py, vLLM 0.6.6; torch/csrc/cuda.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"Failed to infer device type",
        r"No CUDA GPUs are available|[Nn]o CUDA-capable device is detected|Found no NVIDIA driver on your "
        r"system|CUDA unknown error",
        r"CUDA-capable device\(s\) is/are busy or unavailable|NVML.*(?:Driver Not Loaded|driver/library "
        r"version mismatch|not found)",
        r"Driver/library version mismatch|couldn't communicate with the NVIDIA driver|No (?:HIP|ROCm) GPUs? "
        r"(?:are|is) available",
        r"cudaGetDeviceCount\(\) returned cudaErrorNotSupported",
        r"rank \d+ is out of bounds for 0 devices|NVMLError_(?:InvalidArgument|NotFound|DriverNotLoaded|NoPermission)",
    )
    if hit is None:
        return
    yield context.finding(
        hit,
        msg(
            "no GPU is visible to vLLM: run nvidia-smi at the same place; on a host without a card use the CPU build",
            zh="vLLM 看不到 GPU：请在同一环境运行 nvidia-smi；没有显卡的主机请使用 CPU 版本",
        ),
        SURE,
    )


RULE = Rule(
    code="LOG119",
    name="no-gpu-seen",
    severity=Severity.ERROR,
    summary=msg("The process sees no GPU.", zh="进程看不到任何 GPU。"),
    check=check,
    cause=Cause.GPU_NOT_VISIBLE,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/config/device.py",
        "https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/config.py",
    ),
    bad=(
        Example(
            "RuntimeError: Failed to infer device type, please set the environment variable "
            "`VLLM_LOGGING_LEVEL=DEBUG` to turn on verbose logging to help debug the issue.\n",
            at="line 1: RuntimeError: Failed to infer",
        ),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
