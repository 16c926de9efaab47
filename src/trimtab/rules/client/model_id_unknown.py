"""The server does not serve a model of this name.

What it does: reads the model that a 404 names, and the names that /v1/models lists.
Why it matters: the model field must be a served name, letter by letter: --served-model-name where it is given, else
    the path or id after serve.
How to fix: send a name that /v1/models lists, or start the server with --served-model-name and the name that the
    client sends.
When to ignore: never: the request is not served.
Sources: vllm/entrypoints/openai/models/serving.py and vllm/entrypoints/openai/engine/serving.py (_check_model),
    vLLM 0.20 and 0.33; OpenAI's error code model_not_found.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from trimtab.messages import Message, msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"The model [`'\"](?P<name>[^`'\"]+)[`'\"] does not exist",
    r"model_not_found",
    r"model [`'\"]?(?P<name>[\w./:@-]+)[`'\"]? (?:does not exist|is not (?:found|served|available)|not found|could "
    r"not be found)(?!, try pulling)",
    r"(?:unknown|invalid|unrecogni[sz]ed|no such) model(?: name)?:? [`'\"]?(?P<name>[\w./:@-]+)",
    r"no model (?:named|called) [`'\"]?(?P<name>[\w./:@-]+)",
    r"issue with the selected model \((?P<name>[^)]+)\)",
    r"LLM Provider NOT provided.{0,120}model=(?P<name>\S+)",
    r"model=(?P<name>vllm/\S+?)\)? .{0,60}No module named 'vllm'",  # LiteLLM's vllm/ runs vLLM itself
    r"model (?:did not exist|not supported by any provider|is not available)",
)


def _message(name: str, served: tuple[str, ...]) -> Message:
    near = get_close_matches(name.lower().rpartition("/")[2], [m.lower().rpartition("/")[2] for m in served], 1, 0.3)
    best = next((m for m in served if near and m.lower().rpartition("/")[2] == near[0]), served[0] if served else None)
    if best is None:
        return msg(
            "no model of the name {name} is served: send one that /v1/models lists",
            zh="没有名为 {name} 的模型在服务：请发送 /v1/models 列出的名字",
            name=name,
        )
    return msg(
        "no model of the name {name} is served; served are {served}; the nearest is {best}",
        zh="没有名为 {name} 的模型在服务；提供的有 {served}；最接近的是 {best}",
        name=name,
        served=", ".join(served[:5]),
        best=best,
    )


def check(context: ClientContext) -> Iterator[Finding]:
    evidence = context.evidence
    hit = context.said(*PATTERNS)
    if hit is not None:
        name = hit["name"] or evidence.model or "?"
        yield context.finding(hit, _message(name, evidence.models), SURE)
    elif context.probed and evidence.model and evidence.models and evidence.model not in evidence.models:
        listed = context.answer("models below /v1") or context.answer("models")
        if listed is not None:
            yield context.finding(listed, _message(evidence.model, evidence.models), SURE)
    elif not context.probed:
        bad = [s for s in context.with_status(404) if s.path in ("", "/v1/chat/completions", "/v1/completions")]
        if bad and not context.said(r"detail['\"]?: ?['\"]Not Found"):
            yield context.finding(bad, _message("?", ()), 0.45)


RULE = Rule(
    code="CLT015",
    name="model-id-unknown",
    severity=Severity.ERROR,
    summary=msg(
        "The server does not serve a model of this name.",
        zh="服务器不提供这个名字的模型。",
    ),
    check=check,
    cause=Cause.MODEL_ID_UNKNOWN,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/entrypoints/openai/models/serving.py",),
    bad=(
        Example(
            "openai.NotFoundError: Error code: 404 - {'error': {'message': 'The model `gpt-4o` does not exist.', "
            "'type': 'NotFoundError', 'param': 'model', 'code': 404}}\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "model": "qwen2.5-7b", "models": ["Qwen2.5-7B-Instruct"], '
            '"answers": [{"step": "models", "url": "http://127.0.0.1:8000/v1/models", "status": 200}]}\n',
        ),
    ),
    good=(
        Example(
            "openai.NotFoundError: Error code: 404 - {'detail': 'Not Found'}\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "model": "m", "models": ["m"], "answers": [{"step": "chat", '
            '"url": "http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 200}]}\n',
        ),
    ),
)
