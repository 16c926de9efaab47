"""One request is answered with text, a finish reason and a count of its tokens."""

from __future__ import annotations

from trimtab.bench.criterion import Criterion, Figure
from trimtab.bench.inquiry import Inquiry
from trimtab.engine.api import printable
from trimtab.messages import Message, msg

PROMPT = "Say hello in one short sentence."


async def judge(run: Inquiry) -> Criterion:
    """The first answer, which the preparation asked for."""
    done = run.first
    assert done is not None
    measured: dict[str, object] = {"seconds": round(done.total_s, 3), "finish_reason": done.finish_reason}
    wrong: list[Message] = []
    if not done.finished:
        wrong.append(done.why)
    elif not done.text.strip():
        wrong.append(msg("the answer is empty"))
    if done.usage is not None:
        measured |= {"prompt_tokens": done.usage.prompt_tokens, "completion_tokens": done.usage.completion_tokens}
    if done.status == 200 and (done.usage is None or done.usage.completion_tokens < 1):
        wrong.append(msg("the answer counts no tokens (usage)"))
    figures = (Figure("one_request", done.total_s, "s", "less"),)
    if wrong:
        step = msg("Ask the same with curl and read the server's log: trimtab doctor LOG.")
        return Criterion("failed", tuple(wrong), measured, (step,))
    return Criterion("passed", (msg("answered: {text}", text=printable(done.text, 80)),), measured, figures=figures)
