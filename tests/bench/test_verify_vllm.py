"""The real engine passes, and its own words are understood."""

from __future__ import annotations

import pytest

from tests.conftest import DemoServer
from trimtab.bench.endpoint import Target
from trimtab.bench.inquiry import Limits
from trimtab.bench.serverlog import LogSource, read_log
from trimtab.bench.verify import Wish, verify, verify_by
from trimtab.errors import UpstreamError

pytestmark = pytest.mark.vllm


def test_the_demo_is_verified_within_half_a_minute(demo_server: DemoServer) -> None:
    outcome = verify(Target(demo_server.base_url), log=LogSource(demo_server.log))
    assert {c.name: c.passed for c in outcome.criteria} == {
        "one_request": True, "concurrency": True, "long_context": True, "no_oom": True,
    }, [str(e) for c in outcome.criteria for e in c.evidence]  # fmt: skip
    assert outcome.seconds < 30
    measured = next(c.measured for c in outcome.criteria if c.name == "long_context")
    near, beyond = measured["near"], measured["beyond"]
    assert isinstance(near, dict)
    assert isinstance(beyond, dict)
    assert measured["counted_by"] == "tokenize"
    assert near["sent_tokens"] == near["counted_tokens"] > 0.97 * demo_server.max_model_len
    assert (beyond["status"], beyond["counted_tokens"]) == (400, None)
    assert outcome.capacity.context_tokens == demo_server.max_model_len
    assert outcome.capacity.source == "metrics"
    assert outcome.capacity.kv_tokens
    assert outcome.capacity.requests == round(outcome.capacity.kv_tokens / demo_server.max_model_len, 2)


def test_log_and_metrics_tell_the_same_kv_cache(demo_server: DemoServer) -> None:
    outcome = verify(Target(demo_server.base_url), context=256, concurrency=1)
    assert outcome.capacity.kv_tokens == read_log_tokens(demo_server)


def test_a_model_that_is_not_served_is_named(demo_server: DemoServer) -> None:
    with pytest.raises(UpstreamError, match="does not serve the model nope"):
        verify(Target(demo_server.base_url, model="nope"))


def read_log_tokens(server: DemoServer) -> int | None:
    return read_log(LogSource(server.log).read()).kv_tokens


def test_the_engine_streams_counts_keeps_to_a_schema_and_lets_go(demo_server: DemoServer) -> None:
    names = ("streaming", "usage", "structured_output", "embeddings", "cancellation", "ramp", "no_oom")
    outcome = verify_by(Target(demo_server.base_url), Wish(names, concurrency=2, limits=Limits(cancel_s=30)))
    assert {c.name: c.verdict for c in outcome.criteria} == dict.fromkeys(names, "passed") | {
        "embeddings": "not_applicable"
    }, [str(e) for c in outcome.criteria for e in c.evidence]
