"""`docker run` of vLLM's image with `vllm serve` behind it, which the image starts by itself.

What it does: looks at the first word behind the image of `docker run ... vllm/vllm-openai`, where no --entrypoint is
    given.
Why it matters: the image's entry point is the server ("python3 -m vllm.entrypoints.openai.api_server" up to 0.11, "vllm
    serve" from 0.12 on): it takes the words for arguments, finds them unrecognised and stops.
How to fix: leave the words out; up to 0.11 the model then stands behind --model.
When to ignore: for an image of your own under this name whose entry point is a shell.
Sources: docker/Dockerfile (ENTRYPOINT) of vLLM 0.10.2 to 0.33, Dockerfile of 0.6.4 to 0.7.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.engine.command import Form, Span
from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

IMAGE = re.compile(r"(?:docker\.io/)?vllm/vllm-openai(?:[:@].*)?")
GAP = rb"(?:\s|\\\r?\n)+"
AGAIN = re.compile(
    rb"[\"']?" + GAP + rb"(?P<words>vllm" + GAP + rb"serve|python3?" + GAP + rb"-m" + GAP + rb"vllm\.[\w.]+)(?=\s)"
)


def check(context: CommandContext) -> Iterator[Finding]:
    command, box = context.command, context.command.container
    if command.form is not Form.DOCKER or box is None or box.image is None or box.image.span is None:
        return
    data, image = command.source.data, box.image.span
    again = AGAIN.match(data, image.end)
    if (
        again is None
        or not IMAGE.fullmatch(box.image.text)
        or b"--entrypoint" in data[command.span.start : image.start]
    ):
        return
    words = again.group("words").decode()
    yield Finding(
        msg(
            "the image {image} starts the server by itself and takes {words} for arguments, which it does not know",
            zh="镜像 {image} 自己会启动服务，会把 {words} 当作无法识别的参数",
            image=box.image.text,
            words=" ".join(words.replace("\\", " ").split()),
        ),
        Span(again.start("words"), again.end("words")),
    )


RULE = Rule(
    code="CMD027",
    name="server-named-twice",
    severity=Severity.ERROR,
    summary=msg(
        "The container's arguments start the server that its image starts.", zh="容器参数重复启动镜像自带的服务。"
    ),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.10.2/docker/Dockerfile",
        "https://github.com/vllm-project/vllm/blob/v0.33.0/docker/Dockerfile",
    ),
    bad=(
        Example("docker run --gpus all vllm/vllm-openai:v0.10.2 vllm serve m\n", at="vllm serve"),
        Example(
            "docker run vllm/vllm-openai:v0.9.2 \\\n  python3 -m vllm.entrypoints.openai.api_server --model m\n",
            at="python3 -m vllm.entrypoints.openai.api_server",
        ),
    ),
    good=(
        Example("docker run --gpus all --entrypoint '' vllm/vllm-openai:v0.10.2 vllm serve m\n"),
        Example("docker run --gpus all vllm/vllm-openai:v0.26.0 m --port 8001\n"),
        Example("docker run --gpus all me/vllm:v0.26.0 vllm serve m\n"),
    ),
)
