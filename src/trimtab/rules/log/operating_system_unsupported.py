"""vLLM runs on an operating system that its wheels are not for.

What it does: recognises native Windows and macOS by modules, words, and paths of vLLM's own files; a path of Windows in
    a client's or another program's text, or one that was given as a model, tells nothing of the server.
Why it matters: The compiled parts are for Linux; without them classes fail to import, and vLLM says that a model it
    knows is not supported.
How to fix: use WSL 2 or a Linux host; on macOS build vLLM for the CPU from source. The model is supported: do not
    look for another one.
When to ignore: never; the server cannot work like this.
Sources: vLLM's installation guide.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.logs import EntryKind
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, TROUBLE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"python\.exe\W.*\bvllm|[A-Z]:\\.*\\vllm(?:\\[\w\\]+\.py|\.exe)|No module named '(?:resource|fcntl)'"
        r"|uvloop does not support Windows|vllm.*win_amd64|win_amd64.*vllm"
        r"|WinError (?!10\d{3}\b).*(?:\\torch|\\vllm|\.dll|\.pyd|valid Win32)",
        r"only supports Linux|[Mm]acOS is not supported|darwin.*not supported",
        kinds=(*TROUBLE, EntryKind.WARNING),
    ) or context.framed(r"[A-Z]:\\.*\\vllm\\[\w\\]+\.py")
    if hit is None:
        return
    yield context.finding(
        hit,
        msg(
            "this is not Linux, and vLLM's compiled parts are for Linux only: use WSL 2 or a Linux host",
            zh="当前系统不是 Linux，而 vLLM 的编译组件只支持 Linux：请使用 WSL 2 或 Linux 主机",
        ),
        SURE,
    )


RULE = Rule(
    code="LOG126",
    name="operating-system-unsupported",
    severity=Severity.ERROR,
    summary=msg(
        "vLLM runs on an operating system that its wheels are not for.", zh="vLLM 运行在不受支持的操作系统上。"
    ),
    check=check,
    cause=Cause.OPERATING_SYSTEM_UNSUPPORTED,
    sources=("https://docs.vllm.ai/en/latest/getting_started/installation/",),
    bad=(
        Example("ModuleNotFoundError: No module named 'resource'\n", at="line 1: ModuleNotFoundError"),
        Example(
            "Traceback (most recent call last):\n"
            '  File "C:\\Python312\\Lib\\site-packages\\vllm\\__init__.py", line 3, in <module>\n'
            "ImportError: DLL load failed while importing _C\n",
            at="line 3: ImportError",
        ),
    ),
    good=(
        Example("ModuleNotFoundError: No module named 'einops'\n"),
        Example("Error: ENOENT: no such file or directory, open 'C:\\\\Users\\\\me\\\\notes.txt'\n"),
        Example("    at OpenAI.request (C:\\Users\\me\\app\\node_modules\\openai\\core.js:12:9)\n"),
        Example(
            "OSError: C:\\Users\\me\\vllm\\models\\llama is not a local folder and is not a valid model identifier\n"
        ),
    ),
)
