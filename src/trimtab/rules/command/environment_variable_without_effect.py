"""A variable is set that does something else than it seems to, or nothing beside what else is given.

What it does: marks VLLM_PORT and VLLM_HOST_IP given as the server's address, a key that a flag outdoes, and variables
of the CPU build in a container with GPUs.
Why it matters: the server listens elsewhere, or takes another key, than the environment says.
How to fix: write --port and --host for the server's address; give a key once.
When to ignore: when the variable is for vLLM's own traffic between processes.
Sources: vllm/envs.py (VLLM_PORT, VLLM_HOST_IP, VLLM_CPU_KVCACHE_SPACE), vllm/entrypoints/openai/api_server.py, 0.26.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.command import EnvUse
from trimtab.messages import Message, msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

CPU_ONLY = ("VLLM_CPU_KVCACHE_SPACE", "VLLM_CPU_OMP_THREADS_BIND")


def check(context: CommandContext) -> Iterator[Finding]:
    if not words.serves(context):
        return
    for use in context.command.env.values():
        text = fault(context, use)
        if text is not None:
            yield Finding(text, use.span)


def fault(context: CommandContext, use: EnvUse) -> Message | None:
    """Why the variable does not do what it is set for, None where it does."""
    command = context.command
    if use.name == "VLLM_PORT" and (command.last("port") is None or command.get("port") == use.value):
        return msg(
            "VLLM_PORT is for traffic between vLLM's processes; the server listens on --port {port}",
            zh="VLLM_PORT 用于 vLLM 进程之间的通信；服务监听的是 --port {port}",
            port=command.get("port") or context.flags.default("port") or 8000,
        )
    if use.name == "VLLM_HOST_IP" and use.value in ("0.0.0.0", "::"):
        return msg(
            "VLLM_HOST_IP is this host's address for vLLM's own processes, not {value}; --host is for clients",
            zh="VLLM_HOST_IP 是供 vLLM 其他进程使用的本机地址，不能是 {value}；面向客户端的是 --host",
            value=use.value,
        )
    if use.name == "VLLM_API_KEY" and command.all("api-key"):
        return msg("--api-key outdoes VLLM_API_KEY", zh="有 --api-key 时 VLLM_API_KEY 不起作用")
    if use.name in CPU_ONLY and command.container is not None and command.container.gpus is not None:
        return msg(
            "{name} is read by the CPU build alone, and this container has GPUs",
            zh="{name} 只有 CPU 版本才读取，而这个容器使用 GPU",
            name=use.name,
        )
    return None


RULE = Rule(
    code="CMD702",
    name="environment-variable-without-effect",
    severity=Severity.WARNING,
    summary=msg("A variable that does not do what it is set for.", zh="环境变量没有起到预期的作用。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/envs.py",
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/entrypoints/openai/api_server.py",
    ),
    bad=(
        Example("VLLM_PORT=9000 vllm serve m\n", at="VLLM_PORT=9000", vllm="0.26"),
        Example("VLLM_API_KEY=a vllm serve m --api-key b\n", at="VLLM_API_KEY=a", vllm="0.26"),
    ),
    good=(
        Example("VLLM_PORT=9000 vllm serve m --port 8000\n", vllm="0.26"),
        Example("VLLM_API_KEY=a vllm serve m\n", vllm="0.26"),
    ),
)
