"""One line of vLLM's output -> LogEvent. Pure: a line in, a value out.

Wording from vLLM's source and logs: V0 (0.6) to 0.33, CUDA and CPU builds. A prefix names the process and, from the
engine's own logger, level, time and place: `(EngineCore pid=7) ERROR 11-30 03:43:16 [v1/engine/core.py:1330] text`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType

import msgspec


class Kind(StrEnum):
    """What a line tells."""

    VERSION = "version"  # vLLM's version
    LOADING = "loading"  # weights are being read; with done and total when it is a progress bar
    LOADED = "loaded"  # weights_gib, seconds
    COMPILING = "compiling"  # torch.compile or the CPU warm-up runs
    COMPILED = "compiled"  # seconds
    KV_MEMORY = "kv_memory"  # kv_gib
    KV_TOKENS = "kv_tokens"  # kv_tokens; newer versions name concurrency in the same line
    KV_BLOCKS = "kv_blocks"  # kv_blocks
    CONCURRENCY = "concurrency"  # requests of context_tokens that fit
    CAPTURING = "capturing"  # CUDA graphs; done and total
    CAPTURED = "captured"  # graph_gib, seconds
    ENGINE_READY = "engine_ready"  # seconds
    LISTENING = "listening"  # the HTTP server is up: not yet a token
    SHUTDOWN = "shutdown"
    ERROR = "error"  # an ERROR or CRITICAL line, or an error of the command line
    EXCEPTION = "exception"  # the last line of a traceback: `Name: text`
    TRACEBACK = "traceback"  # its other lines
    PLAIN = "plain"  # no prefix of the logger: may continue an exception's text
    OTHER = "other"


class Phase(StrEnum):
    """What a starting engine does, as far as its log tells."""

    LOADING = "loading"
    COMPILING = "compiling"
    SERVING = "serving"


_NOTHING: Mapping[str, float] = MappingProxyType({})


class LogEvent(msgspec.Struct, frozen=True):
    """One line: its kind, the text after the prefix, which process wrote it, and the numbers in it by name and unit."""

    kind: Kind
    text: str
    process: str = ""  # "EngineCore", "Worker_TP0", "APIServer"; empty before vLLM 0.10 and for other programs' lines
    pid: int = 0
    level: str = ""
    numbers: Mapping[str, float] = msgspec.field(default_factory=lambda: _NOTHING)

    @property
    def phase(self) -> Phase | None:
        return _PHASE_OF.get(self.kind)


_PHASE_OF = {
    Kind.LOADING: Phase.LOADING,
    Kind.LOADED: Phase.COMPILING,
    Kind.COMPILING: Phase.COMPILING,
    Kind.COMPILED: Phase.COMPILING,
    Kind.KV_MEMORY: Phase.COMPILING,
    Kind.KV_TOKENS: Phase.COMPILING,
    Kind.KV_BLOCKS: Phase.COMPILING,
    Kind.CAPTURING: Phase.COMPILING,
    Kind.CAPTURED: Phase.COMPILING,
    Kind.LISTENING: Phase.SERVING,
}

_PREFIX = re.compile(
    r"(?:\((?P<process>[^()]*?) pid=(?P<pid>\d+)(?:, [^)]*)?\) ?)?"
    r"(?:(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL)(?:: +| \d\d-\d\d [\d:.]+ \[?[^\]]*\] ?))?"
)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_BAR = re.compile(r"(?P<what>[^|%]*?): +(?P<percent>\d+)%(?: Completed)? ?\|(?:[^|]*\|)? *(?P<done>\d+)/(?P<total>\d+)")
_NUMBER = r"(-?[\d,]+(?:\.\d+)?)"


class _Wording(msgspec.Struct, frozen=True):
    kind: Kind
    pattern: re.Pattern[str]
    names: tuple[str, ...] = ()


def _wording(kind: Kind, pattern: str, *names: str) -> _Wording:
    """`<>` in `pattern` stands for a number; `names` name the numbers in order."""
    return _Wording(kind, re.compile(pattern.replace("<>", _NUMBER)), names)


_WORDINGS = (
    _wording(Kind.VERSION, r"vLLM API server version|Initializing an? (?:V1 )?LLM engine \(v"),
    _wording(Kind.LOADED, r"Model loading took <> G[iB]+(?: memory)? and <> seconds", "weights_gib", "seconds"),
    _wording(Kind.LOADED, r"Loading (?:model )?weights took <> (?:GB|GiB)", "weights_gib"),
    _wording(Kind.LOADED, r"Loading weights took <> seconds", "seconds"),
    _wording(Kind.LOADING, r"Starting to load model|Loading model from scratch|Loading weights (?:on|from|with)"),
    _wording(Kind.COMPILED, r"torch\.compile (?:takes|took) <> s in total", "seconds"),
    _wording(Kind.COMPILED, r"Warming up done"),
    _wording(Kind.COMPILING, r"Dynamo bytecode transform time: <> s", "seconds"),
    _wording(Kind.COMPILING, r"Compiling a graph for .* takes <> s", "seconds"),
    _wording(Kind.COMPILING, r"Warming up model for the comp|Start compiling function|cache directory: .*torch\.comp"),
    _wording(Kind.KV_MEMORY, r"Available KV cache memory: <> GiB", "kv_gib"),
    _wording(Kind.KV_MEMORY, r"(?:Explicitly|Auto) set \(<>/<>\) GiB for KV cache", "kv_gib", "total_gib"),
    _wording(
        Kind.KV_TOKENS,
        r"KV cache size: <> tokens, Maximum concurrency for <> tokens per request: <>x",
        "kv_tokens", "context_tokens", "requests",
    ),
    _wording(Kind.KV_TOKENS, r"KV cache size: <> tokens", "kv_tokens"),
    _wording(Kind.KV_BLOCKS, r"# \w+ blocks: <>", "kv_blocks"),
    _wording(Kind.CONCURRENCY, r"Maximum concurrency for <> tokens per request: <>x", "context_tokens", "requests"),
    _wording(Kind.CAPTURED, r"Graph capturing finished in <> secs, took <> GiB", "seconds", "graph_gib"),
    _wording(Kind.ENGINE_READY, r"init engine \(profile, create kv cache, warmup model\) took <> s", "seconds"),
    _wording(Kind.LISTENING, r"Application startup complete|Uvicorn running on"),
    _wording(Kind.SHUTDOWN, r"\[shutdown\]|^Shutting down|Application shutdown complete"),
)  # fmt: skip

_EXCEPTION = re.compile(
    r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Failure|Timeout|NotFound|OutOfResources)(?:: .+|:?$)"
)
_ARGPARSE = re.compile(r"^[\w .-]+: error: ")
_TRACE = re.compile(r"^(?:Traceback \(most recent call last\):|  +|During handling of|The above exception)")
_BARE_ERRORS = re.compile(
    r"^(?:Segmentation fault|Killed$|Aborted|Fatal Python error|Bus error|terminate called|Illegal instruction)"
)


def parse_line(line: str) -> LogEvent:
    """The event in one line, without its end; of lines joined by a progress bar's carriage returns, the last one."""
    text = line.rsplit("\r", 1)[-1] if "\r" in line else line
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    found = _PREFIX.match(text)
    process, pid, level = (
        (found["process"] or "", int(found["pid"] or 0), found["level"] or "") if found else ("", 0, "")
    )
    rest = text[found.end() :] if found else text
    kind, numbers = _classify(rest, level)
    return LogEvent(kind, rest.rstrip(), process, pid, level, numbers)


def _classify(text: str, level: str) -> tuple[Kind, Mapping[str, float]]:
    if level in ("ERROR", "CRITICAL"):
        return _trouble(text) or Kind.ERROR, _NOTHING
    if level == "":
        trouble = _trouble(text)
        if trouble:
            return trouble, _NOTHING
    if "%" in text and (bar := _BAR.match(text)):
        return _bar(bar)
    if level == "WARNING":
        return Kind.OTHER, _NOTHING
    for wording in _WORDINGS:
        if found := wording.pattern.search(text):
            values = [float(value.replace(",", "")) for value in found.groups()]
            return wording.kind, MappingProxyType(dict(zip(wording.names, values, strict=True)))
    return (Kind.OTHER if level else Kind.PLAIN), _NOTHING


def _trouble(text: str) -> Kind | None:
    if _EXCEPTION.match(text):
        return Kind.EXCEPTION
    if _TRACE.match(text):
        return Kind.TRACEBACK
    return Kind.ERROR if _ARGPARSE.match(text) or _BARE_ERRORS.match(text) else None


def _bar(bar: re.Match[str]) -> tuple[Kind, Mapping[str, float]]:
    what = bar["what"].lower()
    kind = Kind.CAPTURING if "captur" in what else Kind.LOADING if "load" in what else Kind.OTHER
    return kind, MappingProxyType({"done": float(bar["done"]), "total": float(bar["total"])})


def collect(lines: Iterable[str], keep: Callable[[LogEvent], bool] = lambda event: True) -> list[LogEvent]:
    """The events of `lines` that `keep` wants, in order."""
    return [event for event in map(parse_line, lines) if keep(event)]
