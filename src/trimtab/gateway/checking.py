"""What is wrong with a configuration: between its entries, and on this host."""

from __future__ import annotations

import errno
import os
import re
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from ipaddress import ip_network
from pathlib import Path

from trimtab.errors import UsageError
from trimtab.gateway.addresses import base_of, listen_of
from trimtab.gateway.config import PROTOCOLS, BackEndConfig, Config, KeySource, ModelConfig
from trimtab.gateway.findings import Finding, Place, Reading
from trimtab.messages import Message, msg

_KNOWN_PROTOCOLS = sorted(frozenset[str]().union(*PROTOCOLS.values()))
Fault = tuple[Place, Message, Message, bool]  # where, what, what to do, whether it ends a start


def check(
    reading: Reading, environ: Mapping[str, str], *, listening: bool = False,
    more: Callable[[Config], Iterable[Fault]] = lambda config: (),
) -> tuple[Finding, ...]:  # fmt: skip
    """Every finding, by line. `listening`: the gateway itself holds the port (a reload), so that it may be taken.

    `more` looks at what takes longer to look at than a start should: the store.
    """
    config = reading.config
    if config is None:
        return reading.findings
    found = [*_entries(config), *_host(config, environ, listening=listening), *more(config)]
    findings = [
        Finding(what, hint, *reading.at(place), "error" if ends else "warning") for place, what, hint, ends in found
    ]
    return tuple(sorted(findings, key=lambda f: (f.line, f.column)))


def _entries(config: Config) -> Iterator[Fault]:
    for name, back_end in config.back_ends.items():
        yield from _back_end(("back_ends", name), name, back_end)
    for name, model in config.models.items():
        yield from _model(("models", name), name, model, config)
    yield from _loops(config.models)
    yield from _whole(config)


def _lines(place: Place, text: str) -> Iterator[Fault]:
    """What stands in a header or a line of a log may not end it; a name is not empty."""
    if not text and len(place) == 2:
        yield place, msg("there is an entry without a name"), msg("Write a name before its colon."), True
    if not text.isprintable():
        hint = msg("Write it without line breaks and other characters that cannot be printed.")
        yield place, msg("{text} cannot stand in a header", text=repr(text)), hint, True


def _back_end(place: Place, name: str, back_end: BackEndConfig) -> Iterator[Fault]:
    yield from _lines(place, name)
    yield from _lines((*place, "health"), back_end.health or "")
    try:
        base_of(back_end.url)
    except UsageError as error:
        yield (*place, "url"), error.message, error.hint, True
    for at, protocol in enumerate(back_end.protocols or ()):
        if protocol not in _KNOWN_PROTOCOLS:
            what = msg("the back end {name} has the protocol {word}, which is none", name=name, word=repr(protocol))
            yield (*place, "protocols", at), what, _nearest(protocol, _KNOWN_PROTOCOLS), True
    if back_end.key is not None and len(_sources(back_end.key)) != 1:
        what = msg("the key of {name} names {n} places", name=name, n=len(_sources(back_end.key)))
        yield (*place, "key"), what, msg("Name one: env, file or stored."), True
    if back_end.health is not None and not back_end.health.startswith("/"):
        what = msg("the health path of {name} is {path}", name=name, path=repr(back_end.health))
        yield (*place, "health"), what, msg("Write a path, such as /health."), True


def _sources(key: KeySource) -> list[str]:
    return [text for text in (key.env, key.file, key.stored) if text is not None]


def _model(place: Place, name: str, model: ModelConfig, config: Config) -> Iterator[Fault]:
    yield from _lines(place, name)
    for at, target in enumerate(model.targets):
        yield from _lines((*place, "targets", at, "model"), target.model or "")
    if not model.targets and not model.fall_back:
        what = msg("the model {name} has no target", name=name)
        yield place, what, msg("Add targets: [{{back_end: NAME}}], or a fall_back."), True
    for at, target in enumerate(model.targets):
        if target.back_end not in config.back_ends:
            what = msg("the model {name} names the back end {word}, which is none", name=name, word=target.back_end)
            yield (*place, "targets", at, "back_end"), what, _nearest(target.back_end, config.back_ends), True
    for at, other in enumerate(model.fall_back):
        if other not in config.models:
            what = msg("{name} falls back to {other}, which has no entry", name=name, other=other)
            hint = msg("It is served only while a back end lists it. {near}", near=_nearest(other, config.models))
            yield (*place, "fall_back", at), what, hint, False
    if model.hedge_after is not None and len(model.targets) < 2:
        what = msg("hedge_after of {name} does nothing: it has {n} target", name=name, n=len(model.targets))
        yield (*place, "hedge_after"), what, msg("Add a second target, or remove it."), False


def _loops(models: Mapping[str, ModelConfig]) -> Iterator[Fault]:
    """A model that falls back to itself, by whatever way; each loop is told once."""
    told: set[str] = set()
    for name in models:
        way = _way_back(name, models)
        if way and name not in told:
            told.update(way)
            what = msg("the fall-back of {name} leads back to it: {way}", name=name, way=" -> ".join((*way, name)))
            yield ("models", name, "fall_back"), what, msg("Remove one of its steps."), True


def _way_back(start: str, models: Mapping[str, ModelConfig]) -> tuple[str, ...]:
    """The models on a shortest way from `start` to itself, `start` first; empty when there is none."""
    ways: list[tuple[str, ...]] = [(start,)]
    seen: set[str] = set()
    for way in ways:
        entry = models.get(way[-1])
        for other in entry.fall_back if entry else ():
            if other == start:
                return way
            if other not in seen:
                seen.add(other)
                ways.append((*way, other))
    return ()


def _whole(config: Config) -> Iterator[Fault]:
    try:
        listen_of(config.listen)
    except UsageError as error:
        yield ("listen",), error.message, error.hint, True
    for at, network in enumerate(config.trusted_proxies):
        try:
            ip_network(network)
        except ValueError as error:
            what = msg("trusted_proxies: {reason}", reason=str(error))
            yield ("trusted_proxies", at), what, msg("Write an address or a network: 10.0.0.0/8."), True
    for at, origin in enumerate(config.cors):
        if origin != "*" and (not origin.startswith(("http://", "https://")) or origin.count("/") != 2):
            what = msg("cors: {origin} is no origin", origin=repr(origin))
            yield ("cors", at), what, msg("Write scheme and host alone: https://chat.example.com."), True
    if (config.tls_certificate is None) != (config.tls_key is None):
        named = "tls_key" if config.tls_certificate is None else "tls_certificate"
        yield (named,), msg("{name} stands alone", name=named), msg("TLS needs tls_certificate and tls_key."), True
    if config.otlp is not None and not config.otlp.startswith(("http://", "https://")):
        what = msg("otlp: {text} is no URL of a collector", text=repr(config.otlp))
        yield ("otlp",), what, msg("Write it as http://HOST:4318."), True
    if not config.back_ends and not config.models and not config.local:
        what = msg("there is nothing to serve: no back end, no model, and local is off")
        yield (), what, msg("Add an entry under back_ends, or set local: true."), True


def _host(config: Config, environ: Mapping[str, str], *, listening: bool) -> Iterator[Fault]:
    for name, back_end in config.back_ends.items():
        if back_end.key is not None:
            yield from _key(("back_ends", name, "key"), name, back_end.key, environ)
    if config.tls_certificate is not None and config.tls_key is not None:
        yield from _tls(config.tls_certificate, config.tls_key)
    if config.access_log not in (None, "-"):
        yield from _writable(("access_log",), Path(str(config.access_log)))
    if not listening:
        yield from _port(config.listen)


_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def _key(place: Place, name: str, key: KeySource, environ: Mapping[str, str]) -> Iterator[Fault]:
    if key.env is not None and not _VARIABLE.fullmatch(key.env):  # it may be the key itself: not told
        hint = msg("Never the key itself: export NAME=... where the gateway is started, and write env: NAME.")
        yield (*place, "env"), msg("what env names is no variable"), hint, True
    elif key.env is not None and not environ.get(key.env, "").strip():
        what = msg("the key of {name} is in ${variable}, which is not set", name=name, variable=key.env)
        yield (*place, "env"), what, msg("Set it where the gateway is started."), True
    if key.file is not None:
        if (refused := _no_file(key.file)) is not None:
            yield (*place, "file"), *refused
            return
        try:
            empty = not Path(key.file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            yield (*place, "file"), _unreadable(key.file, error), msg("Mend its path, owner or mode."), True
        else:
            if empty:
                what = msg("{file}, which holds the key of {name}, is empty", file=key.file, name=name)
                yield (*place, "file"), what, msg("Write the key into it."), True


def _tls(certificate: str, key: str) -> Iterator[Fault]:
    for field, file in (("tls_certificate", certificate), ("tls_key", key)):
        if (refused := _no_file(file)) is not None:
            yield (field,), *refused
            return
        try:
            Path(file).read_bytes()
        except OSError as error:
            yield (field,), _unreadable(file, error), msg("Mend its path, owner or mode."), True
            return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            what = msg("{key} is not the private key of {certificate}", key=key, certificate=certificate)
        else:
            what = msg("{certificate} and {key} are no usable TLS files: {reason}", certificate=certificate, key=key,
                       reason=error.reason or error)  # fmt: skip
        yield ("tls_key",), what, msg("Both must be PEM, the key without a password and of that certificate."), True


def _no_file(file: str) -> tuple[Message, Message, bool] | None:
    """What is wrong with a pipe or a device: reading it may wait for ever, and a second time there is nothing in it."""
    found = Path(file)
    if found.is_file() or found.is_dir() or not found.exists():
        return None
    hint = msg("Write what it holds into a file: it is read again at each reload.")
    return msg("{file} is a pipe or a device", file=file), hint, True


def _writable(place: Place, file: Path) -> Iterator[Fault]:
    target = file if file.exists() else file.parent
    if not os.access(target, os.W_OK) or file.is_dir():
        what = msg("{file} cannot be written", file=file)
        yield place, what, msg("Make its directory, or mend its owner or mode."), True


def _port(listen: str) -> Iterator[Fault]:
    try:
        host, port = listen_of(listen)
    except UsageError:
        return  # told already
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
        except (OSError, UnicodeError) as error:
            taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
            what = (
                msg("port {port} on {host} is taken", port=port, host=host)
                if taken
                else msg("nothing can listen on {listen} here: {reason}", listen=listen, reason=_reason(error))
            )
            yield ("listen",), what, msg("Name another, or end what listens there."), True


def _unreadable(file: str, error: Exception) -> Message:
    return msg("{file} cannot be read: {reason}", file=file, reason=_reason(error))


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _nearest(word: str, known: Iterable[str]) -> Message:
    names = list(known)
    near = get_close_matches(word, names, n=1)
    if near:
        return msg("Did you mean {near}?", near=near[0])
    return msg("Known: {known}.", known=", ".join(names)) if names else msg("None is configured.")
