"""`docker run` and its like: the container's options, its image, and the arguments that reach vLLM."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from trimtab.engine.command import Container, EnvUse, Form, Span, Value
from trimtab.engine.quantities import counted
from trimtab.engine.reading import arguments
from trimtab.engine.reading.containers import Box
from trimtab.engine.source import Word

ENGINES = {"docker", "podman", "nerdctl", "docker.exe"}
# `docker run --help`, 28.0: options that take no value; all others take one.
BARE = {
    "--detach", "--disable-content-trust", "--help", "--init", "--interactive", "--no-healthcheck",
    "--oom-kill-disable", "--privileged", "--publish-all", "--quiet", "--read-only", "--rm", "--sig-proxy", "--tty",
    "--replace", "--rmi", "--no-hosts", "--env-host", "--http-proxy", "--tls-verify",
}  # fmt: skip
BARE_SHORT = set("dqiPt")
LONG = {"-e": "--env", "-v": "--volume", "-p": "--publish", "-m": "--memory", "-w": "--workdir", "-u": "--user"}


class Options(msgspec.Struct):
    """The options before the image, by their long name."""

    uses: list[tuple[str, str, Span, bool]] = msgspec.field(default_factory=list)

    def all(self, name: str) -> list[Value]:
        return [Value(text, span, not known) for key, text, span, known in self.uses if key == name]

    def last(self, *names: str) -> Value | None:
        found = [v for name in names for v in self.all(name)]
        return found[-1] if found else None


def read_run(words: Sequence[Word], env: Mapping[str, EnvUse], span: Span) -> Box | None:
    """The container that a `docker run` starts, None for any other command."""
    first = _run_at(words)
    if first is None:
        return None
    options, image_at = _options(words, first)
    if image_at >= len(words):
        return None
    image, rest = words[image_at], list(words[image_at + 1 :])
    entry = _entry_words(words[first:image_at]) or None
    return Box(Form.DOCKER, span, _container(options, image), entry, rest, _environment(options, env), image)


def _run_at(words: Sequence[Word]) -> int | None:
    """The index after `docker run`, where its options begin."""
    for i, word in enumerate(words[:-1]):
        if _name(word) in ENGINES:
            for j in range(i + 1, len(words)):
                if words[j].text in ("run", "create"):
                    return j + 1
                if words[j].text != "container" and not words[j].text.startswith("-"):
                    return None
        if i == 0 and _name(word) not in arguments.WRAPPERS:
            return None
    return None


def _name(word: Word) -> str:
    return word.text.rpartition("/")[2]


def _options(words: Sequence[Word], i: int) -> tuple[Options, int]:
    options = Options()
    while i < len(words):
        word = words[i]
        if not word.text.startswith("-") or word.text == "-":
            break
        name, equals, value = word.text.partition("=")
        shift = len(name) + 1
        if not name.startswith("--") and len(name) > 2:
            bundle = name.lstrip("-")
            rest = bundle.lstrip("".join(BARE_SHORT))
            if not rest:
                i += 1
                continue
            name, value = f"-{rest[0]}", rest[1:] + equals + value
            shift = len(word.text) - len(value)
            equals = value
        if name in BARE or name.lstrip("-") in BARE_SHORT:
            i += 1
            continue
        key = LONG.get(name, name)
        if equals:
            options.uses.append((key, value, word.source_span(shift), word.known))
        elif i + 1 < len(words):
            i += 1
            options.uses.append((key, words[i].text, words[i].source_span(), words[i].known))
        i += 1
    return options, i


def _entry_words(words: Sequence[Word]) -> list[Word]:
    for i, word in enumerate(words):
        if word.text == "--entrypoint" and i + 1 < len(words):
            return [words[i + 1]]
        if word.text.startswith("--entrypoint="):
            cut = len("--entrypoint=")
            return [Word(word.text[cut:], word.at[cut:], Span(word.at[cut], word.span.end), word.layer, word.known)]
    return []


def _container(options: Options, image: Word) -> Container:
    cards = [v for v in options.all("--device") if "nvidia.com/gpu" in v.text]
    gpus = options.last("--gpus") or (cards[-1] if cards else None)
    devices = re.search(r"device=([\w,:.-]+)", gpus.text) if gpus else None
    ids = tuple(devices.group(1).split(",")) if devices else ()
    return Container(
        image=Value(image.text, image.source_span(), not image.known),
        gpus=gpus,
        device_ids=ids,
        gpu_count=len(ids) or (counted(gpus.text) if gpus else None),
        shm_size=options.last("--shm-size"),
        ipc=options.last("--ipc"),
        runtime=options.last("--runtime"),
        network=options.last("--network", "--net"),
        ports=tuple(v.text for v in options.all("--publish")),
        volumes=tuple(v.text for v in options.all("--volume")),
    )


def _environment(options: Options, env: Mapping[str, EnvUse]) -> dict[str, EnvUse]:
    found: dict[str, EnvUse] = {}
    for use in options.all("--env"):
        name, equals, value = use.text.partition("=")
        span = use.span or Span(0, 0)
        passed = env.get(name)
        given = value if equals else (passed.value if passed else None)
        found[name] = EnvUse(name, given, span, span, use.unknown)
    return found
