"""Another process listens on the port that the launch asks for.

What it does: looks who listens on the wanted port.
Why it matters: vLLM ends with "address already in use", older releases only after they loaded the model; clients
    meanwhile speak to the other program.
How to fix: name another port (--port N), or end the process in the message.
When to ignore: never: two programs cannot listen on one port.
Sources: bind(2) (EADDRINUSE); vllm/entrypoints/openai/api_server.py, vLLM 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    record = context.record
    holder = record.port_holder
    if holder is None:
        return
    who = (
        msg("the server {name}", zh="服务器 {name}", name=holder.server)
        if holder.server
        else msg("process {pid}: {command}", zh="进程 {pid}：{command}", pid=holder.pid, command=holder.command)
        if holder.pid
        else msg("a process of another user", zh="另一个用户的进程")
    )
    yield Finding(
        msg(
            "port {port} on {host} is taken by {who}",
            zh="{host} 上的端口 {port} 被占用：{who}",
            port=record.wanted.port,
            host=record.wanted.host,
            who=who,
        )
    )


RULE = Rule(
    code="HST301",
    name="port-taken",
    severity=Severity.ERROR,
    summary=msg(
        "Another process listens on the port that the launch asks for.",
        zh="启动命令要用的端口已被别的进程监听。",
    ),
    check=check,
    sources=("https://man7.org/linux/man-pages/man2/bind.2.html",),
    bad=(
        Example(
            '{"wanted": {"port": 8000}, "port_holder": {"pid": 4711, "command": "python -m http.server 8000"}}\n',
        ),
        Example(
            '{"wanted": {"port": 8000}, "port_holder": {}}\n',
        ),
    ),
    good=(
        Example(
            '{"wanted": {"port": 8000}}\n',
        ),
    ),
)
