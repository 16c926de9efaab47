"""The model was asked for what it is not for: to generate, to embed, to classify.

What it does: looks for vLLM's refusal of a runner, task or API, of all versions.
Why it matters: a model is loaded for one kind of work: text, or vectors and scores; the other kind's routes are
    refused or absent.
How to fix: start it as what it is: --runner pooling (--task embed before 0.10) for embedding and ranking models,
    --runner generate for text; --convert adapts a text model. One server does one kind of work.
When to ignore: when a client simply asked the wrong server.
Sources: vllm/config/model.py (runner and convert), vllm/config.py (task), vLLM 0.6 to 0.33;
    vllm/entrypoints/openai/api_server.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"This model does not support `--(?:runner|task|convert) \w+`",
    r"[Dd]oes not support the '\w+' task",
    r"Embedding models do not support `--runner",
    r"should be a generative or pooling model when task is set",
    r"LLM\.(?:generate|encode|score|embed|classify)\(\) is only supported for",
    r"(?:Embedding|Classification|Score|Pooling) API is (?:not supported by this model|only enabled for)",
    r"[Tt]he model does not support [\w ()]+ API",
    r"This model does not support the Scoring API",
    r"Task \S+ is not supported, it must be one of",
    r"does not support task=",
    r"pooling_task must be one of",
    r"'\w+For(?:CausalLM|ConditionalGeneration)' object has no attribute 'pooler'",
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS))
    if found is not None:
        hit, confidence = found
        message = msg(
            "the model is not for what it was asked: {said}",
            zh="该模型不支持所要求的任务：{said}",
            said=words.said(hit),
        )
        yield context.finding(hit, message, confidence, severity=words.by_request(context))


RULE = Rule(
    code="LOG204",
    name="model-task-mismatch",
    severity=Severity.ERROR,
    summary=msg(
        "The model was asked for what it is not for: to generate, to embed, to classify.",
        zh="要求模型做它不支持的任务（生成、向量或分类）。",
    ),
    check=check,
    cause=Cause.MODEL_TASK_MISMATCH,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/config/model.py",),
    bad=(
        Example(
            "ValueError: This model does not support `--runner pooling`. You can pass `--convert embed` to "
            "adapt it into a pooling model.\n"
        ),
        Example("ValueError: This model does not support the 'embed' task. Supported tasks: {'generate'}\n"),
        Example(
            '{"object":"error","message":"The model does not support Embeddings '
            'API","type":"BadRequestError","param":null,"code":400}\n'
        ),
    ),
    good=(Example("INFO 11-30 03:43:16 [entry.py:136] Supported tasks: ['generate']\n"),),
)
