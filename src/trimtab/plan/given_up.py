"""What the user could have had elsewhere and gives up with a plan, each with its number."""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import Message, msg
from trimtab.plan.estimate import TOKEN_BOUND_S
from trimtab.plan.memory.versions import NEWEST
from trimtab.plan.search import BATCHES, CPU_BATCH, Try
from trimtab.plan.wish import Task, Wish


def given_up(task: Task, asked: Wish, found: Try) -> Iterator[Message]:
    """`asked` is the wish before numbers that it leaves open were filled in."""
    yield from _of_the_model(task, found)
    yield from _of_the_cards(task, found)
    yield from _of_speed(task, found)
    if asked.prefer == "throughput" and asked.concurrency is None and found.wish.input_tokens is None:
        yield msg(
            "more than {n} at once where requests are shorter than {size:,} tokens: name --input and --output",
            n=found.wish.concurrency or 1,
            size=found.wish.request_tokens,
        )


def _of_the_model(task: Task, found: Try) -> Iterator[Message]:
    settings, longest = found.budget.settings, task.model.max_positions
    if longest and settings.max_model_len < longest:
        yield msg(
            "a context of {longest:,}, which the model has: {n:,} here", longest=longest, n=settings.max_model_len
        )
    if found.flags.get("dtype") == "half" and task.model.dtype == "bfloat16":
        yield msg("bfloat16: float16 has less range, and a model trained in bfloat16 may overflow")


def _of_the_cards(task: Task, found: Try) -> Iterator[Message]:
    settings, card = found.budget.settings, task.cards[0]
    if task.any_vllm and settings.version < NEWEST:
        yield msg(
            "newer releases of vLLM: {version} is the last that is built for {card}, compute capability {have:.1f}",
            version=str(settings.version),
            card=card.name,
            have=card.capability,
        )
    if settings.tensor_parallel_size > 1 and not card.nvlink and card.vendor == "nvidia":
        yield msg(
            "NVLink, which these cards lack: {n} tensor ranks meet over PCIe twice a layer",
            n=settings.tensor_parallel_size,
        )
    spare = len(task.cards) - settings.cards_needed
    if spare > 0:
        yield msg("{n} of {all} cards, which stay free: --prefer throughput may use them", n=spare, all=len(task.cards))


def _of_speed(task: Task, found: Try) -> Iterator[Message]:
    settings = found.budget.settings
    if settings.enforce_eager and not task.on_cpu and "enforce_eager" not in task.pinned:
        yield msg("CUDA graphs: their memory is needed for the KV cache, and each token takes longer")
    if settings.pipeline_parallel_size > 1:
        yield msg("speed with few requests: the stages of a pipeline wait for each other")
    stalled = found.estimate.stall_s
    if found.wish.prefer == "latency" and stalled is not None and stalled.high > TOKEN_BOUND_S:
        yield msg(
            "the bound on the time between tokens: one longest prompt may hold the others up for {high:,.0f} ms even "
            "in pieces of {tokens:,}, {bound:.0f} are the bound (estimate)",
            high=stalled.high * 1000,
            tokens=settings.max_num_batched_tokens,
            bound=TOKEN_BOUND_S * 1000,
        )
    most = CPU_BATCH if task.on_cpu else BATCHES[0]
    useful = min(most, settings.max_model_len * settings.max_num_seqs)
    if settings.max_num_batched_tokens < useful:
        yield msg(
            "prefill speed: {n:,} tokens a step instead of {most:,}", n=settings.max_num_batched_tokens, most=useful
        )
