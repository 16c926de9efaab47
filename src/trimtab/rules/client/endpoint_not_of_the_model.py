"""The endpoint is for another kind of model than the one that is served.

What it does: reads refusals of chat, completions, embeddings, scoring or transcription.
Why it matters: one instance serves one kind: a generation model refuses embeddings, an embedding model chat.
How to fix: start a second server for the other kind (--runner pooling), or use the endpoints of this one.
When to ignore: never: the request is not served.
Sources: vllm/entrypoints/openai/*/serving.py and vllm/entrypoints/pooling, vLLM 0.33 (does not support ... API).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"model does not support (?:the )?(?!image|video|audio|vision)[\w ]{3,30} API",
    r"does not support the ['\"`]?\w+['\"`]? task|(?:chat completions?|completions?|embeddings?|pooling|"
    r"transcriptions?) (?:API )?(?:is|are) not supported (?:by|for) this model",
    r"is not (?:an embedding|a (?:generation|pooling|generative|chat)) model|only supports? (?:embedding|pooling) ",
)


def check(context: ClientContext) -> Iterator[Finding]:
    hit = context.said(*PATTERNS)
    if hit is not None:
        yield context.finding(
            hit,
            msg(
                "the model that is served does not do what this endpoint asks for",
                zh="所服务的模型不支持该端点的功能",
            ),
            LIKELY,
        )


RULE = Rule(
    code="CLT057",
    name="endpoint-not-of-the-model",
    severity=Severity.ERROR,
    summary=msg(
        "The endpoint is for another kind of model than the one that is served.",
        zh="该端点不适用于所服务的这类模型。",
    ),
    check=check,
    cause=Cause.MODEL_TASK_MISMATCH,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/entrypoints/openai/api_server.py",),
    bad=(
        Example(
            "openai.NotFoundError: Error code: 404 - {'message': 'The model does not support Chat Completions API'}\n",
        ),
        Example(
            "The model does not support Embeddings API\n",
        ),
    ),
    good=(
        Example(
            "openai.NotFoundError: Error code: 404 - {'message': 'The model `a` does not exist.'}\n",
        ),
    ),
)
