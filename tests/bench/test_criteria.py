"""Every criterion in depth: good servers pass it, and each kind of bad one fails it alone, on real sockets."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.openai_server import Knobs, serving
from tests.fakes.wrong_server import Reply, answering
from trimtab.bench.client import Timeouts
from trimtab.bench.criteria.ramp import ramp_levels
from trimtab.bench.criteria.registry import CRITERIA, QUICK
from trimtab.bench.criterion import Criterion
from trimtab.bench.endpoint import Target
from trimtab.bench.inquiry import Limits, Memory
from trimtab.bench.verify import Verification, Wish, chosen, verify_by
from trimtab.errors import UpstreamError, UsageError

SOON = Timeouts(connect_s=5, first_s=5, between_s=1.5)
FILES = Path(__file__).parents[2] / "src" / "trimtab" / "bench" / "criteria"


def judge(knobs: Knobs, *names: str, **more: Any) -> Verification:
    with serving(knobs) as fake:
        wish = Wish(names, timeouts=SOON, **{"concurrency": 4, "memory_minutes": 0.03, **more})
        return verify_by(Target(fake.base_url, knobs.key), wish)


def one(knobs: Knobs, name: str, **more: Any) -> Criterion:
    return next(c for c in judge(knobs, name, **more).criteria if c.name == name)


def words(criterion: Criterion) -> str:
    return " ".join(str(line) for line in (*criterion.evidence, *criterion.next))


def test_each_criterion_is_a_file_and_a_line() -> None:
    files = {file.stem for file in FILES.glob("*.py")} - {"__init__", "registry"}
    assert files == set(CRITERIA)
    assert set(QUICK) <= set(CRITERIA)
    assert list(CRITERIA)[-1] == "no_oom"


def test_a_good_server_passes_all_that_it_offers() -> None:
    found = judge(Knobs(tools="auto", key="sk-1", context=1200), *CRITERIA, memory=lambda: Memory(100.0, None))
    verdicts = {c.name: c.verdict for c in found.criteria}
    assert verdicts == dict.fromkeys(CRITERIA, "passed") | {"embeddings": "not_applicable"}, [
        words(c) for c in found.criteria
    ]
    assert found.passed is True
    assert not found.interrupted
    assert all(c.evidence for c in found.criteria)


PASSES: dict[str, tuple[str, Knobs, str]] = {
    "no parser": ("tools", Knobs(tools="named"), "--enable-auto-tool-choice --tool-call-parser"),
    "the model answers in words": ("tools", Knobs(tools="words"), "chose to answer in words"),
    "recall above the bound": ("needle", Knobs(recalls=4), "recall 4 of 5, bound 80%"),
    "no /tokenize to compare": ("usage", Knobs(tokenize=False), "not there to compare"),
    "embeddings": ("embeddings", Knobs(embeddings="good"), "vectors of 12 numbers"),
    "plain completions": ("structured_output", Knobs(chat=False), "validates"),
    "blocked below the bound": ("blocking", Knobs(prefill_s=0.2), "bound 500 ms"),
}


@pytest.mark.parametrize(("name", "knobs", "said"), PASSES.values(), ids=PASSES)
def test_what_is_good_enough_passes(name: str, knobs: Knobs, said: str) -> None:
    found = one(knobs, name)
    assert found.verdict == "passed", words(found)
    assert said in words(found)


FAILS: dict[str, tuple[str, Knobs, str]] = {
    "no stream": ("streaming", Knobs(streams=False), "as one body"),
    "a stream held back": ("streaming", Knobs(buffers_streams_s=0.6), "proxy_buffering off"),
    "a stream cut": ("streaming", Knobs(cut_streams=True), "did not come whole"),
    "half the prompt counted": ("usage", Knobs(usage_lie="prompt"), "/tokenize counts"),
    "one count for all prompts": ("usage", Knobs(usage_lie="constant", tokenize=False), "0 tokens more"),
    "too few tokens for the chunks": ("usage", Knobs(usage_lie="answer"), "counts 1 tokens"),
    "more tokens than allowed": ("usage", Knobs(usage_lie="more"), "99 tokens of answer where 16"),
    "no usage in streams": ("usage", Knobs(usage_lie="stream"), "a stream tells no usage"),
    "arguments that are no JSON": ("tools", Knobs(tools="garbage"), "do not fit"),
    "a call left in the text": ("tools", Knobs(tools="left"), "left in the text"),
    "a schema ignored": ("structured_output", Knobs(structured="ignored"), "ignores response_format"),
    "facts lost": ("needle", Knobs(recalls=1), "recall 1 of 5, bound 80%"),
    "long prompts cut": ("needle", Knobs(usage_lie="prompt"), "cut:"),
    "requests go on without a client": ("cancellation", Knobs(keeps_running=True), "still ran"),
    "breaks at four": ("ramp", Knobs(fail_streams_above=3), "Hold --max-num-seqs at 2"),
    "preempts": ("ramp", Knobs(preemptions_per_request=3), "preemptions for"),
    "blocks": ("blocking", Knobs(prefill_s=0.8), "--max-num-batched-tokens"),
    "KV cache that is not freed": ("memory", Knobs(leaks_kv=True), "stays in use with nothing running"),
    "zeros": ("embeddings", Knobs(embeddings="zeros"), "only zeros"),
    "one vector for all": ("embeddings", Knobs(embeddings="same"), "the same vector"),
    "a batch in another order": ("embeddings", Knobs(embeddings="shuffled"), "alone and in a batch differ"),
    "texts cut": ("embeddings", Knobs(embeddings="cuts"), "silently cut"),
    "no vectors": ("embeddings", Knobs(embeddings="empty"), "0 of 4 texts"),
}


@pytest.mark.parametrize(("name", "knobs", "said"), FAILS.values(), ids=FAILS)
def test_what_is_bad_fails_and_says_why(name: str, knobs: Knobs, said: str) -> None:
    found = one(knobs, name, limits=Limits(cancel_s=0.5))
    assert found.verdict == "failed", words(found)
    assert said in words(found)
    assert found.next


OPEN: dict[str, tuple[str, Knobs, str, str]] = {
    "no chat": ("tools", Knobs(chat=False), "not_applicable", "/chat/completions"),
    "tools refused": ("tools", Knobs(tools="refused", vllm_metrics=False), "not_applicable", "refuses tools"),
    "schemas refused": (
        "structured_output", Knobs(structured="refused", vllm_metrics=False), "not_applicable",
        "refuses response_format",
    ),
    "an answer that is not over": ("structured_output", Knobs(structured="cut"), "not_measured", "was not over"),
    "no embeddings": ("embeddings", Knobs(), "not_applicable", "makes no embeddings"),
    "too small for a needle": ("needle", Knobs(context=128), "not_applicable", "too short"),
    "too small for a long prompt": ("blocking", Knobs(context=128), "not_applicable", "no long prompt"),
    "context unknown": ("needle", Knobs(state_context=False), "not_measured", "--context"),
    "context unknown, blocking": ("blocking", Knobs(state_context=False), "not_measured", "--context"),
    "tokens not counted": ("needle", Knobs(tokenize=False, usage=False), "not_measured", "cannot be counted"),
    "no counters": ("cancellation", Knobs(metrics=False), "not_measured", "no vLLM counters"),
    "no counters and no processes": ("memory", Knobs(metrics=False), "not_measured", "is not seen"),
    "an answer of one chunk": ("streaming", Knobs(answer=("x",), metrics=False), "not_measured", "tells nothing"),
    "empty answers": ("streaming", Knobs(answer=(), finish_reason="stop", metrics=False), "not_measured", "nothing"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "knobs", "verdict", "said"), OPEN.values(), ids=OPEN)
def test_what_cannot_be_judged_says_why(name: str, knobs: Knobs, verdict: str, said: str) -> None:
    found = one(knobs, name)
    assert found.verdict == verdict, words(found)
    assert said in words(found)


def test_tools_and_schemas_that_vllm_refuses_are_no_matter_of_taste() -> None:
    assert one(Knobs(tools="refused"), "tools").verdict == "failed"
    assert one(Knobs(structured="refused"), "structured_output").verdict == "failed"


def test_a_bound_that_was_stated_decides() -> None:
    assert one(Knobs(recalls=1), "needle", limits=Limits(recall=0.2)).verdict == "passed"
    assert one(Knobs(prefill_s=0.2), "blocking", limits=Limits(itl_ms=100)).verdict == "failed"


def test_growing_memory_fails_and_level_memory_passes() -> None:
    held = iter(range(0, 10**9, 200))
    grown = one(Knobs(), "memory", memory=lambda: Memory(float(next(held)), 50.0))
    assert grown.verdict == "failed"
    assert "host: " in words(grown)
    level = one(Knobs(), "memory", memory=lambda: Memory(500.0, 50.0))
    assert level.verdict == "passed"
    assert level.measured["host_mib"] == 500.0
    assert len(level.series["gpu_mib"]) > 4


def test_a_process_that_ends_meanwhile_fails() -> None:
    assert "ended meanwhile" in words(one(Knobs(), "memory", memory=lambda: None))


def test_a_server_of_embeddings_alone_is_judged_by_them() -> None:
    found = judge(Knobs(embeddings_only=True, embeddings="good"), *QUICK)
    assert {c.name: c.verdict for c in found.criteria} == {
        "embeddings": "passed", "one_request": "not_applicable", "concurrency": "not_applicable",
        "long_context": "not_applicable", "no_oom": "passed",
    }  # fmt: skip
    assert found.passed is True


def test_a_server_that_dies_in_the_middle_is_told_by_every_criterion() -> None:
    found = judge(Knobs(dies_after=6), *CRITERIA)
    verdicts = {c.name: c.verdict for c in found.criteria}
    assert verdicts["one_request"] == "passed"
    assert verdicts["no_oom"] == "failed"
    assert verdicts["ramp"] == "failed"
    assert found.passed is False


def test_a_server_that_hangs_ends_with_the_budget() -> None:
    found = judge(Knobs(hang_streams=True, pings_while_hanging=True), "one_request", "ramp", "memory", "no_oom",
                  budget_s=0.4)  # fmt: skip
    assert {c.name: c.verdict for c in found.criteria} == {
        "one_request": "passed", "ramp": "not_measured", "memory": "not_measured", "no_oom": "passed",
    }  # fmt: skip
    assert "time budget was spent" in words(found.criteria[1])
    assert found.seconds < 3
    assert found.passed is None


def test_a_first_answer_that_never_comes_ends_with_the_budget() -> None:
    ended = threading.Event()
    with serving(Knobs(prefill_s=0)) as fake:
        fake.busy_until = 1e12
        outcome = verify_by(Target(fake.base_url), Wish(("streaming", "no_oom"), timeouts=SOON, budget_s=0.5))
        ended.set()
    assert [c.verdict for c in outcome.criteria] == ["not_measured", "passed"]


@pytest.mark.parametrize(("most", "levels"), [(1, (1,)), (2, (1, 2)), (6, (1, 2, 4, 6)), (8, (1, 2, 4, 8))])
def test_ramp_levels(most: int, levels: tuple[int, ...]) -> None:
    assert ramp_levels(most) == levels


def test_names_and_depths() -> None:
    assert chosen(None, "quick") == QUICK
    assert chosen(None, "full") == tuple(CRITERIA)
    assert chosen(["needle,tools", "one_request"], "quick") == ("one_request", "tools", "needle")
    for names, depth in ((["nedle"], "quick"), ([","], "quick"), (None, "deep")):
        with pytest.raises(UsageError):
            chosen(names, depth)


def test_a_server_that_makes_neither_text_nor_embeddings_is_none() -> None:
    with pytest.raises(UpstreamError, match="neither"):
        judge(Knobs(embeddings_only=True), *CRITERIA)


def whole(**more: Any) -> str:
    message = {"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"}
    return json.dumps({"choices": [message], "usage": {"prompt_tokens": 20, "completion_tokens": 1}} | more)


ODD = {
    "a message that is a number": {"choices": [{"message": 7, "finish_reason": "stop"}]},
    "a message that is a list": {"choices": [{"message": [1], "delta": [2], "finish_reason": "stop"}]},
    "a finish reason that is a number": {"choices": [{"message": {"content": "x"}, "finish_reason": 7}]},
    "tokens in words": {"usage": {"prompt_tokens": 5, "completion_tokens": "many"}},
    "tool calls that are numbers": {"choices": [{"message": {"tool_calls": [7]}, "finish_reason": "tool_calls"}]},
    "choices that are numbers": {"choices": [1, 2]},
}


@pytest.mark.parametrize("more", ODD.values(), ids=ODD)
def test_answers_of_a_strange_shape_fail_and_break_nothing(more: dict[str, Any]) -> None:
    def answer(method: str, path: str, headers: Mapping[str, str], body: str) -> Reply:
        if path.endswith("/models"):
            return Reply(body='{"data": [{"id": "demo", "max_model_len": 512}]}')
        if path.endswith("/metrics"):
            return Reply(body="vllm:num_requests_running NaN\nvllm:num_preemptions_total +Inf\n", kind="text/plain")
        return Reply(body=whole(**more))

    with answering(answer) as url:
        names = ("one_request", "usage", "tools", "structured_output", "embeddings", "no_oom")
        found = verify_by(Target(url), Wish(names, timeouts=SOON, budget_s=20))
    assert found.passed is False
