"""The demo server was started in place of the OpenAI one.

What it does: reads a flag that argparse does not recognize though the OpenAI server of that version has it.
Why it matters: vllm.entrypoints.api_server has few flags and one route, /generate; clients of the OpenAI API get 404.
How to fix: start `vllm serve MODEL`, or `python -m vllm.entrypoints.openai.api_server --model MODEL`.
When to ignore: when /generate is what you want.
Sources: vllm/entrypoints/api_server.py, vLLM 0.2 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import Message, msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import arguments, words
from trimtab.rules.log.context import LIKELY, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"api_server(?:\.py)?: error: unrecognized arguments?: (?P<words>-.+)",
    r"No module named '?(?P<module>vllm\.entrypoints[\w.]*)",
    r"error: unrecognized arguments?: (?P<shell>(?:/bin/|/usr/bin/)?(?:ba)?sh) -c",
    r"exec:? \\?\"vllm\\?\":? executable file not found|exec: vllm: not found",
)


def _of_an_image(shell: str) -> Message:
    if shell:
        return msg(
            "{shell} was given to the image's entry point, which is vLLM itself: give it through --entrypoint",
            zh="{shell} 被传给了镜像的入口点，而入口点就是 vLLM 本身：请通过 --entrypoint 指定",
            shell=shell,
        )
    return msg(
        "this image has no vllm on its PATH: leave its own entry point as it is and give it flags only",
        zh="此镜像的 PATH 中没有 vllm：请保留镜像自身的入口点，只传入参数",
    )


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    if hit is None:
        return
    if words.group(hit, "module"):
        yield context.finding(
            hit,
            msg("this vLLM has no program {module}", zh="此 vLLM 没有程序 {module}", module=hit["module"]),
            SURE,
        )
        return
    if not words.group(hit, "words"):
        yield context.finding(hit, _of_an_image(words.group(hit, "shell")), LIKELY)
        return
    for flag in arguments.of_kind(context, hit, arguments.Kind.ELSEWHERE):
        yield context.finding(
            hit,
            msg(
                "this server has no {flag}, but the OpenAI server has: vllm.entrypoints.api_server is the demo",
                zh="此服务器没有 {flag}，而 OpenAI 服务器有：vllm.entrypoints.api_server 是演示服务器",
                flag=flag.spelling,
            ),
            LIKELY,
        )
        return


RULE = Rule(
    code="LOG306",
    name="entry-point-of-the-demo-server",
    severity=Severity.ERROR,
    summary=msg(
        "The demo server was started in place of the OpenAI one.", zh="启动的是演示服务器，而不是 OpenAI 服务器。"
    ),
    check=check,
    cause=Cause.ENTRYPOINT_WRONG,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/entrypoints/api_server.py",),
    bad=(
        Example("api_server.py: error: unrecognized arguments: --api-key k\n"),
        Example("api_server.py: error: unrecognized arguments: /bin/bash -c python3 -m vllm --port 80\n"),
        Example(
            'Error response from daemon: OCI runtime create failed: runc create failed: exec: "vllm": executable file '
            "not found in $PATH: unknown\n"
        ),
    ),
    good=(Example("vllm: error: unrecognized arguments: --enable-reasoning\n"),),
)
