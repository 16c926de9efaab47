"""From argument words to a LaunchCommand: finds `vllm serve` behind its wrappers and pairs flags with their values."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

import msgspec

from trimtab.engine.command import (
    Arity,
    Container,
    EnvUse,
    FlagUse,
    Form,
    LaunchCommand,
    Origin,
    Source,
    Span,
    Value,
)
from trimtab.engine.source import Layer, Word, together

# vllm/engine/arg_utils.py, vllm/entrypoints/openai/cli_args.py and FlexibleArgumentParser, 0.4 to 0.33.
SHORT = {
    "-tp": "tensor-parallel-size",
    "-pp": "pipeline-parallel-size",
    "-dp": "data-parallel-size",
    "-dpn": "data-parallel-rank",
    "-dpr": "data-parallel-start-rank",
    "-dpl": "data-parallel-size-local",
    "-dpa": "data-parallel-address",
    "-dpp": "data-parallel-rpc-port",
    "-dpb": "data-parallel-backend",
    "-dph": "data-parallel-hybrid-lb",
    "-dpe": "data-parallel-external-lb",
    "-dpm": "data-parallel-multi-port-external-lb",
    "-dcp": "decode-context-parallel-size",
    "-pcp": "prefill-context-parallel-size",
    "-ep": "enable-expert-parallel",
    "-q": "quantization",
    "-n": "nnodes",
    "-r": "node-rank",
    "-sc": "speculative-config",
    "-dc": "diffusion-config",
    "-ac": "attention-config",
    "-cc": "compilation-config",
    "-asc": "api-server-count",
    "-spec-draft-tp": "speculative-draft-tensor-parallel-size",
    "-O": "optimization-level",
}
WRAPPERS = {
    "accelerate", "apptainer", "bash", "catchsegv", "chrt", "command", "conda", "ddtrace-run", "deepspeed", "dumb-init",
    "entrypoint.sh", "env", "eval", "exec", "gosu", "ionice", "mamba", "micromamba", "mpiexec", "mpirun", "ncu", "nice",
    "nohup", "nsys", "numactl", "opentelemetry-instrument", "pdm", "perf", "pipenv", "pixi", "poetry", "ray", "rocprof",
    "rocprofv3", "screen", "script", "setsid", "singularity", "srun", "stdbuf", "strace", "su-exec", "sudo",
    "systemd-run", "taskset", "time", "timeout", "tini", "tmux", "torchrun", "unbuffer", "uv", "uvx", "xargs",
}  # fmt: skip
ENTERING = {"docker", "podman", "nerdctl", "kubectl", "oc"}
HELP = re.compile(r"-h|--help(?:=.*)?")
PYTHON = re.compile(r"(?:.*/)?(?:python[0-9.]*|pypy3?|torchrun|\$\{?PYTHON\w*\}?)$")
MODULES = {
    "vllm.entrypoints.openai.api_server": "api_server",
    "vllm.entrypoints.api_server": "demo_server",
    "vllm.entrypoints.grpc_server": "grpc_server",
}
CLI_MODULES = {"vllm", "vllm.entrypoints.cli.main", "vllm.scripts", "vllm.entrypoints.openai.cli_args"}
SCRIPTS = {"vllm/" + m.removeprefix("vllm.").replace(".", "/") + ".py": s for m, s in MODULES.items()}
SERVERS = {"serve"}
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
BOOLEAN_WORD = {"true", "false"}
NUMBER = re.compile(r"-\.?\d")


class Start(msgspec.Struct, frozen=True):
    """Where vLLM's own arguments begin in a list of words, and by which entry point."""

    first: int
    arguments: int
    subcommand: str


def find_start(words: Sequence[Word]) -> Start | None:
    """The vLLM server started by these words, if they start one (through wrappers); None for anything else."""
    if not words:
        return None
    for i, word in enumerate(words):
        start = _start_at(words, i)
        if start:
            asks = any(HELP.fullmatch(w.text) for w in words[start.arguments :])
            return None if asks else start
        if i == 0 and _program(word) not in WRAPPERS and not ASSIGNMENT.match(word.text) and not _enters(words):
            return None
    return None


def _enters(words: Sequence[Word]) -> bool:
    """Whether the words run a command in a container that is there already."""
    return _program(words[0]) in ENTERING and any(w.text in ("exec", "compose") for w in words[1:4])


def _start_at(words: Sequence[Word], i: int) -> Start | None:
    program = _program(words[i])
    if program == "vllm" or program.startswith(("vllm==", "vllm@")):
        if i + 1 < len(words) and words[i + 1].text in SERVERS:
            return Start(i, i + 2, words[i + 1].text)
        return None
    return _start_of_python(words[i:], i) if PYTHON.match(words[i].text) else None


def _start_of_python(words: Sequence[Word], shift: int = 0) -> Start | None:
    if not PYTHON.match(words[0].text):
        return None
    for i, word in enumerate(words[1:], 1):
        for script, name in SCRIPTS.items():
            if word.text.endswith(script):
                return Start(shift, shift + i + 1, name)
        if word.text != "-m" or i + 1 >= len(words):
            continue
        module = words[i + 1].text
        if module in MODULES:
            return Start(shift, shift + i + 2, MODULES[module])
        if module in CLI_MODULES and i + 2 < len(words) and words[i + 2].text in SERVERS:
            return Start(shift, shift + i + 3, words[i + 2].text)
        return None
    return None


def _program(word: Word) -> str:
    return word.text.rpartition("/")[2]


def launch(
    words: Sequence[Word],
    subcommand: str,
    form: Form,
    source: Source,
    span: Span,
    env: Mapping[str, EnvUse] | None = None,
    container: Container | None = None,
    arity: Arity | None = None,
    program: Sequence[Word] = (),
) -> LaunchCommand:
    """The launch whose vLLM arguments (after `serve` or the module) are `words`."""
    flags, loose = pair(words, arity)
    model = next((_value_of(flag) for flag in reversed(flags) if flag.name == "model" and not flag.path), None)
    if model is None and subcommand == "serve" and loose:
        model, loose = Value(loose[0].text, loose[0].source_span(), not loose[0].known), loose[1:]
    strays = tuple(Value(w.text, w.source_span(), not w.known) for w in loose)
    return LaunchCommand(
        form, source, span, model, flags, MappingProxyType(dict(env or {})), container, strays, subcommand,
        tuple(words), tuple(program),
    )  # fmt: skip


def _value_of(flag: FlagUse) -> Value | None:
    return None if flag.value is None else Value(flag.value, flag.value_span, flag.unknown)


def pair(words: Sequence[Word], arity: Arity | None = None) -> tuple[tuple[FlagUse, ...], list[Word]]:
    """Flags with their values, and the words that belong to none; by the tables of all versions without `arity`."""
    from trimtab.engine.flags import arity as over_all_versions

    flags: list[FlagUse] = []
    loose: list[Word] = []
    i = 0
    while i < len(words):
        word = words[i]
        if not is_flag(word.text):
            loose.append(word)
            i += 1
            continue
        flag, used = _flag(words, i, arity or over_all_versions)
        flags.append(flag)
        i += used
    return tuple(flags), loose


def is_flag(text: str) -> bool:
    """Whether argparse would take the word for an option rather than for a value."""
    return (
        len(text) > 1
        and text[0] == "-"
        and text != "--"
        and not NUMBER.match(text)
        and " " not in text.partition("=")[0]
    )


def _flag(words: Sequence[Word], i: int, arity: Arity) -> tuple[FlagUse, int]:
    word = words[i]
    spelling, equals, attached = word.text.partition("=")
    name, path, negated = canonical(spelling, arity)
    if re.match(r"-O[^.]", spelling):
        spelling, equals, attached = "-O", "O", word.text[2:].removeprefix("=")
    start = word.source_span().start
    whole = word.source_span()
    key_span = word.layer.root_span(Span(word.at[0], word.at[len(spelling)])) if equals else whole
    if equals:
        value_span = word.source_span(len(word.text) - len(attached)) if attached else Span(whole.end, whole.end)
        return FlagUse(
            name, spelling, attached, Span(start, whole.end), key_span, value_span, negated, not word.known,
            Origin.ARGV, path, (attached,), (word,),
        ), 1  # fmt: skip
    takes = "0" if negated else ("1" if path else _takes(name, arity))
    values = _values(words, i + 1, takes)
    if not values:
        return FlagUse(
            name, spelling, None, whole, key_span, None, negated, not word.known, path=path, words=(word,)
        ), 1
    spans = [v.source_span() for v in values]
    texts = tuple(v.text for v in values)
    value_span = Span(spans[0].start, spans[-1].end)
    span = Span(start, value_span.end) if _side_by_side((word, *values), [whole, *spans]) else whole
    return FlagUse(
        name, spelling, " ".join(texts), span, key_span,
        value_span, negated, not all(v.known for v in (word, *values)), Origin.ARGV, path, texts, (word, *values),
    ), 1 + len(values)  # fmt: skip


def _side_by_side(words: Sequence[Word], spans: Sequence[Span]) -> bool:
    return together(words) or (all(w.item for w in words) and all(a < b for a, b in pairwise(spans)))


def canonical(spelling: str, arity: Arity | None = None) -> tuple[str, tuple[str, ...], bool]:
    """Name, dotted path and whether negated, of a flag as spelt (dashes included)."""
    head, *path = spelling.split(".")
    if not head.startswith("--"):
        if head.startswith("-O"):
            # -O3 sets the level; before 0.12 -O stood for the whole configuration
            return "compilation-config" if path else "optimization-level", tuple(path), False
        return SHORT.get(head, head.lstrip("-")), tuple(path), False
    name = head[2:].replace("_", "-")
    if name.startswith("no-") and not (arity and arity(name) is not None):
        return name[3:], tuple(path), True
    return name, tuple(path), False


def _takes(name: str, arity: Arity) -> str:
    return arity(name) or "?"


def _values(words: Sequence[Word], first: int, takes: str) -> list[Word]:
    values: list[Word] = []
    for word in words[first:]:
        if is_flag(word.text) or word.text == "--":
            break
        if takes == "0" and word.text.lower() not in BOOLEAN_WORD:
            break
        values.append(word)
        if takes in ("0", "1", "?"):
            break
    return values


def from_argv(argv: Sequence[str], env: Mapping[str, str], arity: Arity | None = None) -> LaunchCommand:
    """See LaunchCommand.from_argv. The source is the line as a shell would need it."""
    prefix = [f"{name}={shlex.quote(value)}" for name, value in env.items()]
    quoted = [*prefix, *map(shlex.quote, argv)]
    source = Source(" ".join(quoted).encode("utf-8", "surrogateescape"))
    layer = Layer.root(source.data)
    words: list[Word] = []
    uses: dict[str, EnvUse] = {}
    offset = 0
    for i, (written, text) in enumerate(zip(quoted, [*env.values(), *argv], strict=True)):
        end = offset + len(written.encode("utf-8", "surrogateescape"))
        if i < len(prefix):
            name = written.partition("=")[0]
            uses[name] = EnvUse(name, text, Span(offset, end), Span(offset + len(name) + 1, end))
        else:
            words.append(Word(text, _positions(written, text, offset), Span(offset, end), layer))
        offset = end + 1
    start = find_start(words) or Start(0, 1 if words and words[0].text == "serve" else 0, "serve")
    span = Span(0, len(source.data))
    program, rest = words[start.first : start.arguments], words[start.arguments :]
    return launch(rest, start.subcommand, Form.ARGV, source, span, uses, None, arity, program)


def _positions(written: str, text: str, offset: int) -> list[int]:
    """Byte offset of each character of `text` in its shlex.quote form, and of the end."""
    at: list[int] = []
    if written == text:
        for char in [*text, ""]:
            at.append(offset)
            offset += len(char.encode("utf-8", "surrogateescape"))
        return at
    offset += 1
    for char in text:
        if char == "'":
            # shlex writes it as '"'"'
            at.append(offset + 2)
            offset += 5
        else:
            at.append(offset)
            offset += len(char.encode("utf-8", "surrogateescape"))
    return [*at, offset]
