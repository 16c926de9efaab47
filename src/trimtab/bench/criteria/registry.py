"""The criteria by name, in the order in which they are judged: one line each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from trimtab.bench.criteria import (
    blocking,
    cancellation,
    concurrency,
    embeddings,
    long_context,
    memory,
    needle,
    no_oom,
    one_request,
    ramp,
    streaming,
    structured_output,
    tools,
    usage,
)
from trimtab.bench.criterion import Criterion
from trimtab.bench.inquiry import Inquiry

Judge = Callable[[Inquiry], Awaitable[Criterion]]

NO_OOM = "no_oom"
CRITERIA: dict[str, Judge] = {
    "one_request": one_request.judge,
    "streaming": streaming.judge,
    "usage": usage.judge,
    "concurrency": concurrency.judge,
    "long_context": long_context.judge,
    "tools": tools.judge,
    "structured_output": structured_output.judge,
    "embeddings": embeddings.judge,
    "needle": needle.judge,
    "cancellation": cancellation.judge,
    "ramp": ramp.judge,
    "blocking": blocking.judge,
    "memory": memory.judge,
    NO_OOM: no_oom.judge,  # last: it looks back on all others
}
QUICK = ("one_request", "concurrency", "long_context", NO_OOM)
WITHOUT_TEXT = ("embeddings", "memory", NO_OOM)
