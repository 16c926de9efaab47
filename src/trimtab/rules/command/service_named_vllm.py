"""A Kubernetes Service called vllm gives every pod beside it a VLLM_PORT that vLLM cannot read.

What it does: looks for a Service named vllm in the manifest that also holds the launch.
Why it matters: Kubernetes sets VLLM_PORT=tcp://... for it, and vLLM wants a number there and stops.
How to fix: give the Service another name, or set enableServiceLinks: false in the pod.
When to ignore: when the Service stands in another namespace.
Sources: vllm/envs.py (get_vllm_port, which names the cause), vLLM 0.26; Kubernetes' documentation of Service variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from trimtab.engine.command import Form, Span
from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

DOCUMENT = re.compile(rb"^---.*$", re.MULTILINE)
SERVICE = re.compile(rb"^kind:[ \t]*Service[ \t]*\r?$", re.MULTILINE)
NAME = re.compile(rb"^metadata:[ \t]*\r?\n(?:[ \t]+.*\n)*?[ \t]+name:[ \t]*[\"']?(vllm)[\"']?[ \t]*\r?$", re.MULTILINE)
UNLINKED = re.compile(rb"enableServiceLinks:[ \t]*false")


def check(context: CommandContext) -> Iterator[Finding]:
    data = context.command.source.data
    if context.command.form is not Form.KUBERNETES or "VLLM_PORT" in context.command.env or UNLINKED.search(data):
        return
    bounds = [0, *(found.end() for found in DOCUMENT.finditer(data)), len(data)]
    for start, end in pairwise(bounds):
        name = NAME.search(data, start, end) if SERVICE.search(data, start, end) else None
        if name is not None:
            yield Finding(
                msg(
                    "the Service vllm makes Kubernetes set VLLM_PORT=tcp://..., where vLLM wants a number",
                    zh="名为 vllm 的 Service 会让 Kubernetes 设置 VLLM_PORT=tcp://...，而 vLLM 要求它是数字",
                ),
                Span(*name.span(1)),
            )
            return


POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: server
spec:
  containers:
  - name: server
    image: vllm/vllm-openai:v0.26.0
    args: [org/m]
---
apiVersion: v1
kind: Service
metadata:
  name: NAME
spec:
  ports:
  - port: 8000
"""

RULE = Rule(
    code="CMD705",
    name="service-named-vllm",
    severity=Severity.ERROR,
    summary=msg(
        "A Kubernetes Service called vllm sets VLLM_PORT.", zh="名为 vllm 的 Kubernetes Service 会设置 VLLM_PORT。"
    ),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/envs.py",
        "https://kubernetes.io/docs/concepts/services-networking/service/",
    ),
    bad=(Example(POD.replace("NAME", "vllm"), at="vllm"),),
    good=(Example(POD.replace("NAME", "vllm-server")),),
)
