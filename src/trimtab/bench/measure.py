"""A whole measurement: find the server, write the prompts, run the load, sum it up."""

from __future__ import annotations

import asyncio
import resource
import time
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import msgspec

from trimtab.bench.client import Timeouts, open_client
from trimtab.bench.endpoint import Server, Target, answering_server, check_target, version_of
from trimtab.bench.gauge import Gauge
from trimtab.bench.load import Load, Shape, Wanted, draw
from trimtab.bench.prompt import make_ruler
from trimtab.bench.run import Outcome, Progress, Way, run
from trimtab.bench.stats import Summary, Targets, summary
from trimtab.bench.texts import Sized, mark_of, write
from trimtab.bench.wire import Bounds, address_of
from trimtab.errors import UpstreamError, UsageError
from trimtab.messages import msg

WARM_REQUESTS = 2  # not counted: the first ones compile kernels
DURATION_REQUESTS_S = 200  # prompts written per second of a run bounded by time alone; then they are used again


class Plan(msgspec.Struct, frozen=True):
    """What to measure."""

    target: Target
    shape: Shape
    load: Load
    seed: int = 0
    targets: Targets | None = None
    trace: tuple[Wanted, ...] = ()
    bounds: Bounds = Bounds()
    sampling: dict[str, Any] = {}
    prompts: int | None = None  # how many different ones are written


class Measured(msgspec.Struct, frozen=True):
    """What was measured, and on what."""

    url: str
    model: str
    started: str
    plan: Plan
    exact_lengths: bool  # prompts were counted by the server's /tokenize
    exact_output: bool  # vLLM was told to ignore the end of the text
    outcome: Outcome
    summary: Summary
    client_cpu_share: float  # of one core, over the run
    engine: str | None = None  # vLLM's version, where the server tells one


def measure(plan: Plan, progress: Progress | None = None) -> Measured:
    """Run it. UpstreamError where no server of this kind answers, UsageError where the request cannot be served."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_measure(plan, progress))


async def _measure(plan: Plan, progress: Progress | None) -> Measured:
    check_target(plan.target)
    bounds = plan.bounds
    timeouts = Timeouts(bounds.connect_s, bounds.first_s, bounds.between_s)
    async with open_client(plan.target.base_url, plan.target.api_key, timeouts) as client:
        server = await answering_server(client, plan.target, timeouts)
        wanted = _wanted(plan, server)
        ruler = await make_ruler(client, server, f"{plan.seed}.", timeouts)
        if ruler is None:
            raise UpstreamError(
                msg("{url} counts no tokens: neither /tokenize nor a usage in its answers", url=server.url),
                hint=msg("Ask a server that tells the usage; lengths in tokens mean nothing without."),
            )
        engine = await version_of(client, server)
        requests = await write(client, server, ruler, plan.shape, wanted, plan.seed)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    with Gauge(server.root, plan.target.api_key) as gauge:
        vllm = gauge.look().vitals is not None
        way = Way(server, address_of(server.url, plan.target.api_key), bounds, vllm, plan.sampling)
        cpu, clock = _cpu(), time.perf_counter()
        watched = gauge if vllm else None
        requests = _enough(requests, plan)
        outcome = await run(way, plan.shape, plan.load, requests, gauge=watched, progress=progress)
    used = (_cpu() - cpu) / max(time.perf_counter() - clock, 1e-9)
    open_loop = plan.load.rate is not None or any(w.at_s is not None for w in plan.trace)
    found = summary(outcome.rows, outcome.span_s, plan.targets, open_loop=open_loop)
    return Measured(server.api, server.model, started, plan, ruler.exact, vllm, outcome, found, used, engine)


def _wanted(plan: Plan, server: Server) -> list[Wanted]:
    load = plan.load
    if plan.trace:
        wanted = [*_warm(plan), *plan.trace]
    else:
        count = load.requests
        if count is None:
            count = plan.prompts or max(64, round((load.duration_s or 1) * (load.rate or 1) * 1.5))
        wanted = list(islice(draw(plan.shape, load, plan.seed), count + load.warmup * plan.shape.turns))
    for one in wanted:
        total = one.input_tokens + one.output_tokens
        if server.context_tokens is not None and total > server.context_tokens:
            raise UsageError(
                msg("a request of {total} tokens is longer than the model's context of {context}",
                    total=total, context=server.context_tokens),
                hint=msg("Ask for less with --input and --output; {context} tokens hold both.",
                         context=server.context_tokens),
            )  # fmt: skip
    return wanted


def _warm(plan: Plan) -> list[Wanted]:
    """Requests as a trace's first ones, before it begins: it loses none, and its prompts stay new to a prefix cache."""
    count = len(plan.trace)
    found = []
    for number in range(plan.load.warmup):
        like, id = plan.trace[number % count], count + number
        text = f"{mark_of(plan.seed, id)} {like.text}" if like.text is not None else None
        found.append(msgspec.structs.replace(like, id=id, at_s=None, conversation=-1 - number, text=text))
    return found


def _enough(requests: list[Sized], plan: Plan) -> list[Sized]:
    """As many as a run bounded by time may need: the prompts again, under new numbers."""
    load = plan.load
    if plan.trace or load.requests is not None or load.duration_s is None or load.rate is not None:
        return requests
    wanted = round(load.duration_s * DURATION_REQUESTS_S)
    times = max(1, -(-wanted // len(requests)))
    conversations = requests[-1].wanted.conversation + 1
    return requests + [
        one.again(one.wanted.id + again * len(requests), one.wanted.conversation + again * conversations, plan.seed)
        for again in range(1, times)
        for one in requests
    ]


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
