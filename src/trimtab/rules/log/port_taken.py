"""The port is in use.

What it does: reads the system's refusal to bind, by the HTTP server, by torch's store, by Ray and by Docker.
Why it matters: another server, or one left over from the start before, listens there; under supervision this becomes
    a restart loop.
How to fix: see who it is (`ss -ltnp`, `trimtab status`), end it, or give another --port; ports between processes are
    chosen by vLLM unless VLLM_PORT or --master-port fixes them.
When to ignore: never; the server does not listen.
Sources: errno 98; vllm/entrypoints/openai/api_server.py (create_server_socket), torch's TCPStore, uvicorn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.log.fixes import set_flag
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"[Aa]ddress (?:already )?in use",
    r"EADDRINUSE",
    r"error while attempting to bind on address \('[^']*', (?P<port>\d+)\)(?!: (?:permission denied|cannot assign))",
    r"[Pp]ort (?P<port>\d+) is (?:already )?(?:in use|allocated|occupied)",
    r"port is already allocated",
    r"server socket has failed to (?:bind|listen)",
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    if hit is None:
        return
    found = re.search(r"(?:port[: ]+|address \('[^']*', |\]:|0\.0:|127\.0\.0\.1:)(\d{2,5})", hit.entry.text)
    port = found[1] if found else str(context.facts.args.get("port") or "")
    if not port:
        message = msg(
            "a port that vLLM needs is in use: {said}", zh="vLLM 所需的端口已被占用：{said}", said=words.said(hit)
        )
        yield context.finding(hit, message, SURE)
        return
    message = msg("port {port} is in use by another process", zh="端口 {port} 已被其他进程占用", port=port)
    fix = set_flag(context, "port", str(int(port) + 1)) if int(port) < 65535 else None
    yield context.finding(hit, message, SURE, fix=fix)


RULE = Rule(
    code="LOG401",
    name="port-taken",
    severity=Severity.ERROR,
    summary=msg("The port is in use.", zh="端口已被占用。"),
    check=check,
    cause=Cause.PORT_TAKEN,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/entrypoints/openai/api_server.py",),
    bad=(
        Example("OSError: [Errno 98] Address already in use\n"),
        Example(
            "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use\n"
        ),
        Example(
            "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network "
            "address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in "
            "use\n"
        ),
    ),
    good=(Example("INFO 11-30 03:43:16 [launcher.py:1] Starting vLLM API server 0 on http://0.0.0.0:8000\n"),),
)
