"""No out-of-memory, no dead engine, no restart, no preemption storm since the verification began."""

from __future__ import annotations

from trimtab.bench.criterion import Criterion
from trimtab.bench.health import judge_health, look
from trimtab.bench.inquiry import Inquiry
from trimtab.messages import msg


async def judge(run: Inquiry) -> Criterion:
    """Log and counters before all other criteria and after them."""
    run.after = await look(run.client, run.server, run.log)
    passed, measured, evidence = judge_health(run.before, run.after)
    if passed is None:
        return Criterion("not_measured", evidence, measured, (msg("Pass the server's log with --log FILE."),))
    if passed:
        return Criterion("passed", evidence, measured)
    return Criterion("failed", evidence, measured, (msg("Let the log be read: trimtab doctor LOG (or NAME)."),))
