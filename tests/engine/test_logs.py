"""The log reader on real logs: vLLM 0.26 on H200, 0.32 on CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from trimtab.engine.logs import Kind, LogEvent, Phase, collect, failure_summary, parse_line

LOGS = Path(__file__).parent / "logs"


def events_of(name: str) -> list[LogEvent]:
    with (LOGS / f"{name}.log").open(newline="") as file:
        return collect(file.read().replace("\r", "\n").split("\n"))


def numbers(name: str, *kinds: Kind) -> list[dict[str, float]]:
    return [dict(event.numbers) for event in events_of(name) if event.kind in kinds]


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("cpu-0.32-unknown-flag", "main.py: error: unrecognized arguments: --no-such-flag"),
        ("cpu-0.32-absent-model", "Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/models/absent'"),
        (
            "cpu-0.32-context-too-long",
            "ModelConfig: User-specified max_model_len (99999999) is greater than the derived max_model_len "
            "(max_position_embeddings=8192.0",
        ),
        (
            "cpu-0.32-kv-too-large",
            "ValueError: Available memory on node 0 (11.2/13.59 GiB) on kv cache allocation is less than requested",
        ),
        ("h200-0.26-q72-oom", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 924.00 MiB."),
    ],
)
def test_the_cause_and_not_the_last_line(name: str, cause: str) -> None:
    told = failure_summary(events_of(name))
    assert cause in told[0]
    assert len(told) == 1, "the same cause told by several processes is one"


@pytest.mark.parametrize(
    "name", ["cpu-0.32-eager", "cpu-0.32-compiled", "h200-0.26-q7-default", "h200-0.26-tp2-q72-eager"]
)
def test_a_healthy_log_has_no_error(name: str) -> None:
    assert failure_summary(events_of(name)) == ()


def test_memory_lines_on_the_gpu() -> None:
    assert numbers(
        "h200-0.26-q7-default", Kind.LOADED, Kind.KV_MEMORY, Kind.KV_TOKENS, Kind.CONCURRENCY, Kind.CAPTURED
    ) == [
        {"weights_gib": 14.29, "seconds": 1.713532},
        {"kv_gib": 111.95},
        {"kv_tokens": 2096192.0},
        {"context_tokens": 32768.0, "requests": 63.97},
        {"seconds": 5.0, "graph_gib": 0.89},
    ]
    assert numbers("h200-0.26-tp2-q72-eager", Kind.LOADED) == [
        {"weights_gib": 67.8, "seconds": 2.396418},
        {"weights_gib": 67.8, "seconds": 2.705543},
    ]


def test_memory_lines_on_the_cpu() -> None:
    assert numbers("cpu-0.32-compiled", Kind.KV_MEMORY, Kind.KV_TOKENS, Kind.ENGINE_READY) == [
        {"kv_gib": 1.0, "total_gib": 15.21},
        {"kv_tokens": 46592.0, "context_tokens": 2048.0, "requests": 22.75},
        {"seconds": 183.44},
    ]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("cpu-0.32-compiled", [Kind.VERSION, Kind.LOADING, Kind.LOADED, Kind.COMPILING, Kind.COMPILED, Kind.KV_TOKENS]),
        (
            "h200-0.26-q7-default",
            [Kind.LOADING, Kind.LOADED, Kind.COMPILING, Kind.COMPILED, Kind.CAPTURING, Kind.CAPTURED],
        ),
    ],
)
def test_phases_come_in_order(name: str, kinds: list[Kind]) -> None:
    seen = [event.kind for event in events_of(name)]
    places = [seen.index(kind) for kind in kinds]
    assert places == sorted(places)


def test_progress_bars() -> None:
    shards = numbers("cpu-0.32-eager", Kind.LOADING)
    assert {"done": 1.0, "total": 1.0} in shards
    captures = numbers("h200-0.26-q7-default", Kind.CAPTURING)
    assert captures[-1] == {"done": 51.0, "total": 51.0}


@pytest.mark.parametrize(
    ("line", "kind", "process", "values"),
    [
        ("INFO 03-27 10:00:00 gpu_executor.py:76] # GPU blocks: 1478, # CPU blocks: 2048", Kind.KV_BLOCKS, "", [1478]),
        ("INFO 11-30 10:00:00 [e.py:114] # cuda blocks: 27,902, # CPU blocks: 0", Kind.KV_BLOCKS, "", [27902]),
        ("INFO 03-27 10:00:00 worker.py:241] Loading model weights took 14.9888 GB", Kind.LOADED, "", [14.9888]),
        ("(APIServer pid=7) INFO:     Application startup complete.", Kind.LISTENING, "APIServer", []),
        ("INFO:     127.0.0.1:1234 - \"GET /health HTTP/1.1\" 200 OK", Kind.OTHER, "", []),
        ("(RayWorkerWrapper pid=9, ip=10.0.0.2) ERROR 03-27 10:00:00 w.py:5] b", Kind.ERROR, "RayWorkerWrapper", []),
        ("ValueError: No available memory for the cache blocks.", Kind.EXCEPTION, "", []),
        ("Segmentation fault (core dumped)", Kind.ERROR, "", []),
        ("\x1b[0;36m(EngineCore pid=3)\x1b[0;0m INFO 11-30 10:00:00 [a.py:1] Available KV cache memory: 9.50 GiB",
         Kind.KV_MEMORY, "EngineCore", [9.5]),
        ("\0\0\xff", Kind.PLAIN, "", []),
        ("", Kind.PLAIN, "", []),
    ],
)  # fmt: skip
def test_wordings_of_other_versions(line: str, kind: Kind, process: str, values: list[float]) -> None:
    event = parse_line(line)
    assert (event.kind, event.process) == (kind, process)
    assert list(event.numbers.values()) == values


def test_a_line_behind_a_progress_bar() -> None:
    bar = "Capturing CUDA graphs (FULL):  39%|███▉      | 20/51 [00:00<00:01, 30.28it/s](EngineCore pid=1) DEBUG x"
    event = parse_line(bar)
    assert (event.kind, dict(event.numbers)) == (Kind.CAPTURING, {"done": 20, "total": 51})
    assert event.phase is Phase.COMPILING


def test_a_consequence_alone_is_better_than_nothing() -> None:
    lines = ["RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"]
    assert failure_summary(collect(lines)) == tuple(lines)


def test_interleaved_workers_keep_their_own_text() -> None:
    lines = [
        "(Worker_TP0 pid=1) ERROR 11-30 10:00:00 [a.py:1] ValueError: first half",
        "(Worker_TP1 pid=2) ERROR 11-30 10:00:00 [a.py:1] KeyError: 'other'",
        "(Worker_TP0 pid=1) ERROR 11-30 10:00:00 [a.py:1] second half",
    ]
    assert failure_summary(collect(lines)) == ("ValueError: first half second half", "KeyError: 'other'")
