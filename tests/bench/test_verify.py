"""Each criterion catches what it should and nothing else, on a real socket."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.openai_server import FakeServer, Knobs, serving
from trimtab.bench.client import Timeouts
from trimtab.bench.criteria.concurrency import concurrency_levels
from trimtab.bench.criterion import Criterion
from trimtab.bench.endpoint import Target
from trimtab.bench.serverlog import LogSource, read_log
from trimtab.bench.verify import Verification, verify
from trimtab.errors import UpstreamError, UsageError

SOON = Timeouts(connect_s=5, first_s=10, between_s=1.5)
ALL_PASSED = {"one_request": True, "concurrency": True, "long_context": True, "no_oom": True}


def judge(fake: FakeServer, **more: Any) -> Verification:
    return verify(Target(fake.base_url, fake.knobs.key), timeouts=SOON, **more)


def verdicts(outcome: Verification) -> dict[str, bool | None]:
    return {c.name: c.passed for c in outcome.criteria}


def evidence(outcome: Verification, name: str) -> str:
    return " ".join(str(e) for c in outcome.criteria if c.name == name for e in c.evidence)


GOOD = {
    "as vLLM": Knobs(),
    "with a key": Knobs(key="sk-1"),
    "chunks end in CRLF": Knobs(crlf=True),
    "no /tokenize": Knobs(tokenize=False),
    "no chat endpoint": Knobs(chat=False),
    "no chat template": Knobs(chat_template=False),
    "max_completion_tokens and no temperature": Knobs(old_parameters=False),
    "OpenAI's refusal": Knobs(refuse_style="openai"),
    "llama.cpp's refusal": Knobs(refuse_style="llama.cpp"),
    "a refusal in plain text": Knobs(refuse_style="text"),
    "few preemptions": Knobs(preemptions_per_request=0.5),
    "paths without /v1": Knobs(prefix=""),
    "words of many tokens": Knobs(words_to_tokens=2.5),
    "words of many tokens, no /tokenize": Knobs(words_to_tokens=2.5, tokenize=False),
}


@pytest.mark.parametrize("knobs", GOOD.values(), ids=GOOD.keys())
def test_a_good_server_passes(knobs: Knobs) -> None:
    with serving(knobs) as fake:
        outcome = judge(fake)
    assert verdicts(outcome) == ALL_PASSED, [str(e) for c in outcome.criteria for e in c.evidence]
    assert outcome.passed is True
    assert fake.seen.most_streams == 8


BAD: dict[str, tuple[Knobs, set[str], str, str]] = {
    "empty answer": (Knobs(answer=()), {"one_request"}, "one_request", "empty"),
    "no usage": (Knobs(usage=False), {"one_request"}, "one_request", "usage"),
    "no finish reason": (
        Knobs(finish_reason=None),
        {"one_request", "concurrency", "long_context"},
        "one_request",
        "finish reason",
    ),
    "500": (
        Knobs(fail_status=500),
        {"one_request", "concurrency", "long_context"},
        "one_request",
        "500: broken",
    ),
    "hangs mid-stream": (Knobs(hang_streams=True), {"concurrency"}, "concurrency", "nothing for 1.5 s"),
    "hangs and pings": (
        Knobs(hang_streams=True, pings_while_hanging=True),
        {"concurrency"},
        "concurrency",
        "nothing for 1.5 s",
    ),
    "cuts streams": (Knobs(cut_streams=True), {"concurrency"}, "concurrency", "cut after 2 chunks"),
    "breaks at 8, not at 4": (Knobs(fail_streams_above=4), {"concurrency"}, "concurrency", "of 8 at once"),
    "cuts prompts": (Knobs(cuts_prompts=True), {"long_context"}, "long_context", "cut"),
    "cuts prompts, no /tokenize": (
        Knobs(cuts_prompts=True, tokenize=False),
        {"long_context"},
        "long_context",
        "silently cut",
    ),
    "refuses with 422": (Knobs(refuse_status=422), {"long_context"}, "long_context", "422"),
    "refuses with 500": (Knobs(refuse_status=500), {"long_context"}, "long_context", "500"),
    "preemption storm": (Knobs(preemptions_per_request=3), {"no_oom"}, "no_oom", "preemption storm"),
    "errors in the engine": (Knobs(errors_per_request=1), {"no_oom"}, "no_oom", "ended with an error"),
    "restarts": (Knobs(restarts=True), {"no_oom"}, "no_oom", "restarted"),
}


@pytest.mark.parametrize(("knobs", "failed", "name", "said"), BAD.values(), ids=BAD.keys())
def test_a_bad_server_fails_what_it_should(knobs: Knobs, failed: set[str], name: str, said: str) -> None:
    with serving(knobs) as fake:
        outcome = judge(fake)
    assert {n for n, passed in verdicts(outcome).items() if passed is False} == failed
    assert said in evidence(outcome, name)
    assert outcome.passed is False


def test_a_server_that_dies_fails_and_what_could_not_run_says_why() -> None:
    with serving(Knobs(dies_after=3)) as fake:
        outcome = judge(fake)
    assert verdicts(outcome) == {
        "one_request": True, "concurrency": False, "long_context": None, "no_oom": False,
    }  # fmt: skip
    assert "no longer answers" in evidence(outcome, "no_oom")
    assert "no answer at all" in evidence(outcome, "long_context")


@pytest.mark.parametrize("knobs", [Knobs(metrics=False), Knobs(vllm_metrics=False)])
def test_without_log_and_counters_memory_is_not_judged(knobs: Knobs) -> None:
    with serving(knobs) as fake:
        outcome = judge(fake)
    assert verdicts(outcome) == ALL_PASSED | {"no_oom": None}
    assert outcome.passed is None


def test_an_unknown_context_is_not_judged() -> None:
    with serving(Knobs(state_context=False)) as fake:
        outcome = judge(fake)
        assert verdicts(outcome)["long_context"] is None
        assert "--context" in evidence(outcome, "long_context")
        assert verdicts(judge(fake, context=512)) == ALL_PASSED


def test_a_stated_context_below_the_server_s_own_is_tried_near_it_and_refused_beyond_the_server_s() -> None:
    with serving(Knobs(context=900)) as fake:
        outcome = judge(fake, context=400)
    measured = next(c.measured for c in outcome.criteria if c.name == "long_context")
    near, beyond = measured["near"], measured["beyond"]
    assert isinstance(near, dict)
    assert isinstance(beyond, dict)
    assert 376 <= near["sent_tokens"] <= 384
    assert beyond["sent_tokens"] > 900
    assert outcome.passed is True


def test_a_context_above_the_server_s_own_fails() -> None:
    with serving(Knobs(context=400)) as fake:
        outcome = judge(fake, context=900)
    assert verdicts(outcome) == ALL_PASSED | {"long_context": False}


def test_a_server_with_a_longer_context_than_told_is_not_judged() -> None:
    with serving(Knobs(context=4000, state_context=False)) as fake:
        outcome = judge(fake, context=400)
    assert verdicts(outcome) == ALL_PASSED | {"long_context": None}
    assert "longer than 400" in evidence(outcome, "long_context")


def test_capacity_says_how_many_requests_the_cache_holds() -> None:
    with serving() as fake:
        capacity = judge(fake).capacity
    assert (capacity.kv_blocks, capacity.kv_tokens, capacity.requests) == (96, 1536, 3.0)
    assert (capacity.memory_utilization, capacity.source) == (0.9, "metrics")


OOM = (
    "(EngineCore pid=9) ERROR 11-30 03:43:16 [v1/engine/core.py:1330] torch.OutOfMemoryError: CUDA out of memory. Tried"
)
DEAD = "(APIServer pid=7) ERROR 11-30 03:43:17 [async_llm.py:500] EngineDeadError: EngineCore encountered an issue."
START = "(APIServer pid=7) INFO 11-30 03:40:00 [api_server.py:1896] vLLM API server version 0.26.0"
TOKENS = "(EngineCore pid=9) INFO 11-30 03:41:00 [kv_cache_utils.py:2177] GPU KV cache size: 2,048 tokens"
REQUEST = "INFO 11-30 [logger.py:40] Received request cmpl-1: prompt: 'why torch.OutOfMemoryError?', params: ..."


@pytest.mark.parametrize(
    ("lines", "passed", "said"),
    [
        ([START, TOKENS], True, "2 lines of log"),
        ([START, OOM], False, "out of memory in log line 2"),
        ([START, DEAD], False, "engine death in log line 2"),
        ([START, OOM, START, TOKENS], True, "4 lines of log"),
        ([START, REQUEST], True, "2 lines"),
    ],
)
def test_the_log_is_read(tmp_path: Path, lines: list[str], passed: bool, said: str) -> None:
    log = tmp_path / "server.log"
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with serving(Knobs(metrics=False)) as fake:
        outcome = judge(fake, log=LogSource(log))
    assert verdicts(outcome) == ALL_PASSED | {"no_oom": passed}
    assert said in evidence(outcome, "no_oom")


def test_a_log_tells_the_capacity_and_an_earlier_start_can_be_left_out(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"{OOM}\n{TOKENS}\n", encoding="utf-8")
    with serving(Knobs(metrics=False)) as fake:
        outcome = judge(fake, log=LogSource(log, from_byte=len(OOM) + 1))
    assert outcome.passed is True
    assert (outcome.capacity.kv_tokens, outcome.capacity.source) == (2048, "log")
    assert outcome.capacity.requests == 4.0


def test_a_missing_log_is_named(tmp_path: Path) -> None:
    with serving() as fake, pytest.raises(UsageError, match=r"server\.log"):
        judge(fake, log=LogSource(tmp_path / "server.log"))


def test_prompts_are_new_in_each_run_and_different_from_each_other() -> None:
    with serving() as fake:
        judge(fake)
        judge(fake)
    prompts = [b["messages"][0]["content"] for b in fake.seen.bodies if "messages" in b and b.get("stream")]
    assert len(prompts) == len(set(prompts)) == 24


def test_an_observer_hears_begin_and_end_of_each_criterion() -> None:
    heard: list[tuple[str, Criterion | None]] = []
    with serving() as fake:
        outcome = judge(fake, observer=lambda name, criterion: heard.append((name, criterion)))
    assert heard == [pair for c in outcome.criteria for pair in ((c.name, None), (c.name, c))]


@pytest.mark.parametrize(
    ("most", "levels"), [(1, (1,)), (2, (2,)), (4, (4,)), (6, (4, 6)), (8, (4, 8)), (32, (4, 8, 16, 32))]
)
def test_concurrency_levels(most: int, levels: tuple[int, ...]) -> None:
    assert concurrency_levels(most) == levels


NO_SERVER: dict[str, tuple[Knobs, dict[str, Any], str, str]] = {
    "key absent": (Knobs(key="sk-1"), {}, "none was given", "--key"),
    "key wrong": (Knobs(key="sk-1"), {"api_key": "sk-2"}, "refused the key", "--api-key"),
    "key with a blank": (Knobs(key="sk-1"), {"api_key": "sk-1 "}, "blank", "Copy the key"),
    "key with a line break": (Knobs(key="sk-1"), {"api_key": "sk-1\n"}, "line break", "Copy the key"),
    "web page": (Knobs(models_page="html"), {}, "web page", "/v1"),
    "redirect": (Knobs(models_page="redirect"), {}, "login.example", "URL"),
    "text": (Knobs(models_page="text"), {}, "not an OpenAI-compatible server", "port"),
    "no model list": (Knobs(models_page="missing"), {}, "not an OpenAI-compatible server", "--model"),
    "no models": (Knobs(models_page="empty"), {}, "lists no model", "--model"),
    "not ready": (Knobs(models_page="503"), {}, "503: loading the model", "ready"),
    "plain HTTP to TLS": (Knobs(models_page="tls-notice"), {}, "speaks TLS", "https://"),
    "model not served": (Knobs(), {"model": "nope"}, "does not serve the model nope", "demo"),
    "embeddings only": (Knobs(embeddings_only=True), {}, "neither", "embedding"),
    "key asked for later": (Knobs(key="sk-1", open_models=True), {}, "none was given", "--key"),
    "no text endpoint": (Knobs(chat=False, completions=False), {}, "neither", "embedding"),
}


@pytest.mark.parametrize(("knobs", "parts", "said", "hint"), NO_SERVER.values(), ids=NO_SERVER.keys())
def test_what_is_no_server_is_named_with_a_next_step(knobs: Knobs, parts: dict[str, Any], said: str, hint: str) -> None:
    with serving(knobs) as fake, pytest.raises(UpstreamError) as caught:
        verify(Target(fake.base_url, **parts), timeouts=SOON)
    assert said in str(caught.value)
    assert hint in str(caught.value.hint)


def test_a_wrong_path_is_told_the_right_one() -> None:
    with serving() as fake, pytest.raises(UpstreamError) as caught:
        verify(Target(f"{fake.base_url}/api"), timeouts=SOON)
    assert str(caught.value.hint) == f"Pass {fake.base_url}/v1."


def test_tls_to_a_plain_port_is_recognised() -> None:
    with serving() as fake, pytest.raises(UpstreamError) as caught:
        verify(Target(fake.base_url.replace("http:", "https:")), timeouts=SOON)
    assert "try http://127.0.0.1:" in str(caught.value.hint)


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://host/v1", "http://", "nonsense", "http://h:99999", "http://h:x", "http://[::1"]
)
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(UpstreamError, match="not a URL"):
        verify(Target(url))


def test_nothing_listens() -> None:
    with serving() as fake:
        url = fake.base_url
    with pytest.raises(UpstreamError, match="no connection"):
        verify(Target(url), timeouts=SOON)


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/v1/chat/completions", "/v1/models"])
def test_the_base_url_is_understood_with_and_without_v1(path: str) -> None:
    with serving() as fake:
        outcome = verify(Target(fake.base_url + path), timeouts=SOON, concurrency=1)
    assert outcome.url == f"{fake.base_url}/v1"
    assert outcome.passed is True


def test_what_speaks_no_http_is_named() -> None:
    def greet() -> None:
        with suppress(OSError):
            peer, _ = listener.accept()
            with peer:
                peer.recv(4096)
                peer.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=greet)
        thread.start()
        with pytest.raises(UpstreamError) as caught:
            verify(Target(f"http://127.0.0.1:{listener.getsockname()[1]}"), timeouts=SOON)
        thread.join()
    assert "no HTTP at all" in str(caught.value.hint)


@pytest.mark.parametrize("numbers", [{"context": 0}, {"concurrency": 0}, {"concurrency": -1}])
def test_numbers_below_one_are_refused(numbers: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="1 or more"):
        verify(Target("http://127.0.0.1:9"), **numbers)


V0 = "INFO 02-06 executor_base.py:111] # cuda blocks: 1478, # CPU blocks: 2048"
V0_FITS = "INFO 02-06 executor_base.py:115] Maximum concurrency for 29000 tokens per request: 0.82x"


def test_a_v0_log_tells_blocks_and_the_tokens_that_fit() -> None:
    reading = read_log([START, V0, V0_FITS])
    assert (reading.kv_blocks, reading.kv_tokens) == (1478, 23780)


@pytest.mark.parametrize(("style", "said"), [("vllm", "400: This model"), ("mute", "not in words of length: no")])
def test_a_refusal_is_quoted_and_one_without_reason_is_said_to_be_so(style: str, said: str) -> None:
    with serving(Knobs(refuse_style=style)) as fake:
        outcome = judge(fake)
    assert outcome.passed is True
    assert said in evidence(outcome, "long_context")


def test_a_server_without_a_model_list_is_judged_when_the_model_is_named() -> None:
    with serving(Knobs(models_page="missing")) as fake:
        outcome = verify(Target(fake.base_url, model="demo"), context=512, timeouts=SOON)
    assert outcome.passed is True


def test_it_runs_in_a_thread_beside_a_loop() -> None:
    outcomes: list[Verification] = []
    with serving() as fake:
        thread = threading.Thread(target=lambda: outcomes.append(judge(fake)))
        thread.start()
        thread.join()
    assert [o.passed for o in outcomes] == [True]
