"""An answer that was asked for as a stream comes piece by piece."""

from __future__ import annotations

from itertools import pairwise

from trimtab.bench.criterion import Criterion
from trimtab.bench.inquiry import Inquiry
from trimtab.messages import msg

TOKENS = 24
HELD_SHARE = 0.05  # of the time until the last chunk: all came within the end of it, so somebody held them back
LONG_S = 0.2  # below it nobody can tell


async def judge(run: Inquiry) -> Criterion:
    """One stream; pass when its chunks are spread over the time that it took."""
    done = await run.send(f"{run.mark} stream. Count from one to twenty.", TOKENS)
    count = len(done.times)
    gaps = [b - a for a, b in pairwise(done.times)]
    measured: dict[str, object] = {
        "chunks": count,
        "first_token_s": round(done.times[0], 3) if done.times else None,
        "last_token_s": round(done.times[-1], 3) if done.times else None,
        "longest_gap_s": round(max(gaps), 3) if gaps else None,
    }
    if not done.streamed and done.trouble is None:
        why = msg("asked for a stream, the answer came as one body")
        step = msg("Use a server that streams: readers wait for the whole answer, and proxies cut long ones.")
        return Criterion("failed", (why,), measured, (step,))
    if done.trouble is not None:
        why = msg("the stream did not come whole: {why}", why=done.fault.message if done.fault else done.trouble)
        return Criterion("failed", (why,), measured, (msg("Read the server's log: trimtab doctor LOG."),))
    if count < 3:
        return Criterion("not_measured", (msg("an answer of {n} chunks tells nothing", n=count),), measured)
    last = done.times[-1]
    if last > LONG_S and last - done.times[0] < HELD_SHARE * last:
        why = msg("{n} chunks came together at the end, after {seconds:.1f} s", n=count, seconds=last)
        step = msg("Switch off buffering in the proxy before it (nginx: proxy_buffering off).")
        return Criterion("failed", (why,), measured, (step,))
    first = done.times[0]
    return Criterion(
        "passed", (msg("{n} chunks, the first after {first:.2f} s, the last after {last:.2f} s",
                       n=count, first=first, last=last),), measured,
    )  # fmt: skip
