"""A whole log as one value: whatever wraps its lines, however it is cut, whoever writes between."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trimtab.engine.logs import Access, EntryKind, Phase, read_log

LOGS = Path(__file__).parent / "logs"
OOM = (LOGS / "h200-0.26-q72-oom.log").read_bytes()
SERVED = (
    b"INFO 11-30 03:43:16 [api_server.py:1] vLLM API server version 0.26.0\nINFO:     Application startup complete.\n"
)

WRAPPERS: dict[str, Callable[[str], str]] = {
    "compose": lambda line: f"vllm-1  | {line}",
    "kubectl": lambda line: f"2026-11-30T03:43:16.529346373Z {line}",
    "cri": lambda line: f"2026-11-30T03:43:16.529346373+00:00 stderr F {line}",
    "pod": lambda line: f"[pod/vllm-0/server] {line}",
    "journald": lambda line: f"Nov 30 03:43:16 host vllm[712]: {line}",
    "json": lambda line: json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "2026-11-30T03:43:16Z"}).replace(
        '{"log": ', '{"log":'
    ),
    "collected": lambda line: json.dumps({"timestamp": "2026-11-30T03:43:16Z", "level": "info", "message": line}),
    "pm2": lambda line: f"0|vllm  | {line}",
    "bracketed": lambda line: f"[2026-11-30 03:43:16] {line}",
    "syslog": lambda line: f"<30>1 2026-11-30T03:43:16Z host vllm 712 - - {line}",
    "colours": lambda line: f"\x1b[36m{line}\x1b[0m",
    "windows": lambda line: f"{line}\r",
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_log_says_the_same_whatever_wraps_its_lines(wrapper: str) -> None:
    plain = read_log([OOM])
    wrapped = "\n".join(WRAPPERS[wrapper](line) for line in OOM.decode().split("\n"))
    found = read_log([wrapped.encode()])
    assert [(e.kind, e.line, e.text) for e in found.entries] == [(e.kind, e.line, e.text) for e in plain.entries]
    assert found.facts == plain.facts


@pytest.mark.parametrize(
    "prefix", ["vllm-6d5f4-abcde vllm ", "2026-11-30 03:43:16.529 ", "2026-11-30 03:43:16 [Info] "]
)
def test_an_engine_s_line_is_known_behind_any_of_these(prefix: str) -> None:
    said = "(EngineCore pid=7) WARNING 11-30 03:43:16 [cuda.py:1] a word"
    (entry,) = read_log([f"{prefix}{said}\n".encode()]).entries
    assert (entry.kind, entry.text) == (EntryKind.WARNING, "a word")


def test_an_error_body_is_no_collector_s_line() -> None:
    body = '{"object":"error","message":"the model does not exist","code":404}'
    assert [e.text for e in read_log([body.encode()]).entries] == [body]


@pytest.mark.parametrize("size", [1, 7, 100, 4096])
def test_a_log_says_the_same_however_it_is_cut(size: int) -> None:
    assert read_log(OOM[i : i + size] for i in range(0, len(OOM), size)) == read_log([OOM])


def test_an_exception_has_its_line_its_process_and_its_traceback() -> None:
    first = read_log([OOM]).of(EntryKind.EXCEPTION)[0]
    assert (first.line, first.process, first.pid, first.repeats) == (119, "EngineCore", 5299, 2)
    assert first.text.startswith("torch.OutOfMemoryError: CUDA out of memory.")
    assert first.frames[-1] == "out = torch.empty(output_shape, dtype=x.dtype, device=x.device)"
    assert any("profile_run" in frame for frame in first.frames)


def test_facts_of_the_launch() -> None:
    facts = read_log([OOM]).facts
    assert (facts.version, facts.model, facts.architecture) == ("0.26.0", "/models/qwen2.5-72b", "Qwen2ForCausalLM")
    assert facts.args["enforce_eager"] is True
    assert facts.numbers["weights_gib"] == 135.43
    assert facts.numbers["total_gib"] == 139.8
    assert (facts.phase, facts.served) == (Phase.COMPILING, False)


def test_all_flags_of_an_old_version_are_told_apart_from_given_ones() -> None:
    line = (
        "INFO 06-26 07:48:15 api_server.py:176] args: Namespace(host=None, port=8000, model='a/b', "
        "max_model_len=4096, tensor_parallel_size=2, enforce_eager=False, lora_modules=None, stop=['x'])\n"
    )
    facts = read_log([line.encode()]).facts
    assert facts.all_args
    assert facts.model == "a/b"
    assert facts.args["tensor_parallel_size"] == 2
    assert facts.args["enforce_eager"] is False


def test_two_workers_that_write_at_once_keep_their_tracebacks() -> None:
    def worker(rank: int, text: str) -> str:
        return f"(Worker_TP{rank} pid={90 + rank}) ERROR 11-30 03:43:16 [multiproc_executor.py:7] {text}"

    both = [
        "Traceback (most recent call last):",
        '  File "/x/worker.py", line {n}, in load_model',
        "ValueError: rank {n}",
    ]
    lines = [worker(rank, text.format(n=rank)) for text in both for rank in (0, 1)]
    found = read_log(["\n".join(lines).encode()]).of(EntryKind.EXCEPTION)
    assert [(e.process, e.text, e.frames) for e in found] == [
        (f"Worker_TP{n}", f"ValueError: rank {n}", (f'File "/x/worker.py", line {n}, in load_model',)) for n in (0, 1)
    ]


def test_ray_and_torch_name_their_ranks() -> None:
    text = (
        "\x1b[36m(RayWorkerWrapper pid=312, ip=10.0.0.2)\x1b[0m ERROR 06-22 20:16:34 worker_base.py:464] "
        "ValueError: one\n"
        "[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/x/a.py", line 1, in go\n'
        "[rank1]: RuntimeError: two\n"
    )
    found = read_log([text.encode()]).of(EntryKind.EXCEPTION)
    assert [(e.process, e.text) for e in found] == [
        ("RayWorkerWrapper", "ValueError: one"),
        ("rank1", "RuntimeError: two"),
    ]


def test_a_line_of_ten_megabytes_and_nul_bytes() -> None:
    text = SERVED + b"x" * 10_000_000 + b"\n\0\0ValueError: \0after\0\n"
    found = read_log(text[i : i + 65536] for i in range(0, len(text), 65536))
    assert found.lines == 4
    assert [(e.line, e.text) for e in found.of(EntryKind.EXCEPTION)] == [(4, "ValueError: after")]


CR_ENDS: dict[str, Callable[[bytes], bytes]] = {
    "CR": lambda log: log.replace(b"\n", b"\r"),
    "CR, and an LF at the end": lambda log: log.replace(b"\n", b"\r") + b"\n",
    "CR CR LF": lambda log: log.replace(b"\n", b"\r\r\n"),
}


@pytest.mark.parametrize("size", [7, 1000, 1 << 20])
@pytest.mark.parametrize("ends", CR_ENDS)
def test_a_lone_cr_ends_a_line_where_no_lf_does(ends: str, size: int) -> None:
    log = CR_ENDS[ends](OOM)
    found, plain = read_log(log[i : i + size] for i in range(0, len(log), size)), read_log([OOM])
    assert [(e.kind, e.line, e.text) for e in found.entries] == [(e.kind, e.line, e.text) for e in plain.entries]
    assert found.facts == plain.facts


@pytest.mark.parametrize("size", [7, 1000, 1 << 20])
def test_lines_that_end_in_cr_after_one_that_ends_in_lf(size: int) -> None:
    log = b"started\n" + OOM.replace(b"\n", b"\r")
    found, plain = read_log(log[i : i + size] for i in range(0, len(log), size)), read_log([OOM])
    assert [e.text for e in found.of(EntryKind.EXCEPTION)] == [e.text for e in plain.of(EntryKind.EXCEPTION)]


@pytest.mark.parametrize("size", [1 << 16, 1 << 20])
def test_of_a_progress_bar_only_what_it_shows_last_is_read(size: int) -> None:
    bars = b"".join(b"\rLoading:  %d%% Completed | %d/100 [00:01<00:02, 1.2it/s]" % (i, i) for i in range(1, 101))
    log = b"first\nAborted (core dumped)" + 500 * bars + b"\rValueError: odd\nlast\n"
    found = read_log(log[i : i + size] for i in range(0, len(log), size))
    assert (2, "Aborted (core dumped)") in [(e.line, e.text) for e in found.entries]
    assert [e.text for e in found.of(EntryKind.EXCEPTION)] == ["ValueError: odd last"]
    assert sum("Completed" in e.text for e in found.entries) <= 1
    assert found.tail[-1] == "last"


@pytest.mark.parametrize("part", [b"\r" * (1 << 20), (b"INFO 11-30 03:43:16 [x.py:1] a word\r" * 30_000)[: 1 << 20]])
def test_a_log_of_crs_is_read_in_bounded_memory(part: bytes) -> None:
    tracemalloc.start()
    try:
        found = read_log(part if n < 20 else b"\rValueError: odd" for n in range(21))
        assert tracemalloc.get_traced_memory()[1] < 40 * 2**20
    finally:
        tracemalloc.stop()
    assert "ValueError: odd" in [e.text for e in found.entries]


def test_many_different_errors_are_bounded() -> None:
    words = (
        "abcdefghijklmnop"[n % 16] + "abcdefghijklmnop"[n // 16 % 16] + "abcdefghijklmnop"[n // 256]
        for n in range(4096)
    )
    found = read_log([b"".join(f"ValueError: {word}\n".encode() for word in words)])
    assert found.cut
    assert len(found.entries) == 1000


def test_memory_does_not_grow_with_ever_new_words() -> None:
    rng = random.Random(7)

    def lines() -> Iterator[bytes]:
        for _ in range(300):
            ids = (rng.getrandbits(256) for _ in range(100))
            yield "".join(f"WARNING 11-30 03:43:16 [x.py:1] request {n:x}\n" for n in ids).encode()

    tracemalloc.start()
    found = read_log(lines())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(found.entries), found.cut) == (500, True)
    assert peak < 5_000_000


def test_the_last_of_many_starts_is_read_as_the_first_was() -> None:
    once = OOM + b"ValueError: another one of this start\n"
    found = read_log([once] * 400)
    together = read_log([once * 400])
    assert (together.facts, together.lines) == (found.facts, found.lines)
    assert [(e.line, e.text) for e in together.entries] == [(e.line, e.text) for e in found.entries]
    assert found.facts.starts == 400
    newest = [e for e in found.entries if e.line > found.facts.begin_line]
    first = read_log([once]).entries
    assert [e.text for e in newest if e.kind is EntryKind.EXCEPTION] == [
        e.text for e in first if e.kind is EntryKind.EXCEPTION
    ]
    assert not found.cut


def test_what_is_told_again_is_counted() -> None:
    found = read_log([b"ValueError: same\n" * 50])
    assert [(e.text, e.repeats) for e in found.entries] == [("ValueError: same", 50)]


def test_lines_of_a_serving_engine_are_passed_over_and_its_errors_not() -> None:
    quiet = (
        b"(APIServer pid=1) INFO 11-30 03:43:16 [loggers.py:1] Engine 000: Avg prompt throughput: 1.0 tokens/s\n"
        b'(APIServer pid=1) INFO:     10.0.0.1:5 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
    )
    error = b"(EngineCore pid=2) ERROR 11-30 03:43:16 [core.py:1] RuntimeError: late\n"
    found = read_log([SERVED, *[quiet * 100] * 300, error])
    assert [(e.line, e.text) for e in found.of(EntryKind.EXCEPTION)] == [(60_003, "RuntimeError: late")]
    assert found.facts.served


def test_a_restart_after_long_service_is_a_start_of_its_own() -> None:
    quiet = b"INFO 11-30 03:43:16 [loggers.py:1] Engine 000: Avg prompt throughput: 1.0 tokens/s\n"
    again = b"INFO 11-30 04:00:00 [api_server.py:1] vLLM API server version 0.27.0\n"
    found = read_log([SERVED, *[quiet * 100] * 300, again, b"ValueError: second\n"])
    assert (found.facts.version, found.facts.starts, found.facts.served) == ("0.27.0", 2, False)
    assert found.facts.begin_line == 30_003
    assert [e.start for e in found.of(EntryKind.EXCEPTION)] == [2]


def test_answers_of_400_and_above_are_counted() -> None:
    line = b'INFO:     10.0.0.1:5 - "POST /v1/completions HTTP/1.1" 404 Not Found\n'
    assert read_log([SERVED + line * 3]).accesses == (Access(404, "/v1/completions", 3, 3),)


@pytest.mark.parametrize("data", [b"", b"\n", b"\0", b"\xff\xfe\n" * 9, b"no newline"])
def test_no_log_at_all(data: bytes) -> None:
    found = read_log([data])
    assert found.facts.starts == 0
    assert not found.of(EntryKind.EXCEPTION, EntryKind.ERROR)


def test_a_word_longer_than_any_path_is_cut_in_its_middle() -> None:
    word = "x_" * 4000
    (entry,) = read_log([f"ValueError: {word}end is no path\n".encode()]).entries
    assert len(entry.text) < 500
    assert entry.text.endswith("x_x_end is no path")
    path = f"/models/{'a' * 255}/config.json"
    (entry,) = read_log([f"OSError: {path} is damaged\n".encode()]).entries
    assert path in entry.text


def test_a_traceback_without_its_head_goes_with_its_exception() -> None:
    log = b'  File "a.py", line 7, in load_model\n    raise ValueError(x)\nValueError: no weights\n'
    (entry,) = read_log([log]).entries
    assert (entry.kind, entry.line, entry.text) == (EntryKind.EXCEPTION, 3, "ValueError: no weights")
    assert entry.frames == ('File "a.py", line 7, in load_model', "raise ValueError(x)")


def test_frames_that_no_exception_follows_are_plain_lines() -> None:
    log = (
        b'Thread 0x7f (most recent call first):\n  File "a.py", line 7, in wait\n  File "b.py", line 1, in run\nready\n'
    )
    assert [(e.kind, e.line) for e in read_log([log]).entries] == [(EntryKind.PLAIN, n) for n in (1, 2, 3, 4)]


def test_an_assertion_without_words_says_what_was_asserted() -> None:
    log = b'Traceback (most recent call last):\n  File "a.py", line 7, in f\n    assert x % 4 == 0\nAssertionError\n'
    (entry,) = read_log([log]).entries
    assert entry.text == "AssertionError: assert x % 4 == 0"
