"""What a gateway is started with: the file and what the command line says over it, read again at each reload."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path

import msgspec

from trimtab.errors import HostError, UsageError
from trimtab.gateway.addresses import listen_of
from trimtab.gateway.checking import check
from trimtab.gateway.config import BackEndConfig, Config, KeySource
from trimtab.gateway.findings import Finding, Reading
from trimtab.messages import Message, msg

ENGINE_KEY = "VLLM_API_KEY"  # asked of the back ends that the command line names, as vLLM reads it


class Setup(msgspec.Struct, frozen=True):
    """The command line; None lets the file decide. `back_ends` are URLs of vLLM servers."""

    file: Path | None = None
    listen: str | None = None
    store: str | None = None
    back_ends: tuple[str, ...] = ()
    state_dir: Path = Path()
    data_dir: Path = Path()
    config_dir: Path = Path()

    @property
    def default_store(self) -> Path:
        """The store of a configuration that names none."""
        return self.data_dir / "gateway" / "store.db"

    @property
    def master_file(self) -> Path:
        """What opens the provider keys of the store, unless the environment does."""
        return self.config_dir / "master.key"


def reading_of(file: Path) -> Reading:
    """The file's reading. HostError when it cannot be read."""
    from trimtab.gateway.reading import read  # brings a YAML parser, which a gateway without a file does not need

    try:
        return read(file.read_bytes(), str(file))
    except OSError as error:
        raise HostError(
            msg("cannot read the configuration {file}: {reason}", file=file, reason=error.strerror),
            hint=msg("Mend its path, owner or mode."),
        ) from error


def load(setup: Setup, *, listening: bool = False) -> Config:
    """The configuration in force. UsageError that names every fault, HostError when the file cannot be read."""
    if listening and setup.file is not None and setup.file.is_fifo():  # reading it may wait for ever
        raise HostError(
            msg("the configuration {file} is a pipe, which is read once alone", file=setup.file),
            hint=msg("Name a file for a gateway that is to be reloaded."),
        )
    reading = reading_of(setup.file) if setup.file is not None else Reading(Config(), (), {})
    if reading.config is not None:
        reading = msgspec.structs.replace(reading, config=_over(reading.config, setup))
    wrong = [finding for finding in check(reading, os.environ, listening=listening) if finding.severity == "error"]
    if wrong or reading.config is None:
        raise UsageError(_told(setup.file, wrong), hint=wrong[0].hint)
    return reading.config


def _over(config: Config, setup: Setup) -> Config:
    key = KeySource(env=ENGINE_KEY) if os.environ.get(ENGINE_KEY, "").strip() else None
    named = {f"back-end-{n}": BackEndConfig(url, kind="vllm", key=key) for n, url in enumerate(setup.back_ends, 1)}
    return msgspec.structs.replace(
        config,
        listen=setup.listen or config.listen,
        store=setup.store or config.store,
        back_ends={**config.back_ends, **named},
    )


def _told(file: Path | None, wrong: Sequence[Finding]) -> Message:
    first = wrong[0]
    if file is None or first.line == 0:
        return first.message
    return msg("{file}, line {line}: {what}{more}", file=file, line=first.line, what=first.message,
               more=msg(" (and {n} more: trimtab gateway check {file})", n=len(wrong) - 1, file=file)
               if len(wrong) > 1 else "")  # fmt: skip


def tls_of(config: Config) -> ssl.SSLContext | None:
    """What the listening side speaks; None for plain HTTP. HostError when the files are of no use."""
    if config.tls_certificate is None or config.tls_key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    renew(context, config)
    return context


def renew(context: ssl.SSLContext, config: Config) -> None:
    """Take the files as they are now, for connections to come."""
    certificate, key = str(config.tls_certificate), str(config.tls_key)
    try:
        context.load_cert_chain(certificate, key, password="")
    except OSError as error:
        raise HostError(
            msg("{certificate} and {key} are no usable TLS files: {reason}", certificate=certificate, key=key,
                reason=error.strerror or error),
            hint=msg("trimtab gateway check says what is wrong with them."),
        ) from error  # fmt: skip


def listening_on(config: Config, *, shared: int = 1) -> list[socket.socket]:
    """`shared` sockets that listen on the address; of several the kernel gives each connection to one. HostError."""
    host, port = listen_of(config.listen)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made: list[socket.socket] = []
    try:
        for _ in range(shared):
            listening = socket.create_server(
                (host, port), family=family, backlog=1024, reuse_port=shared > 1, dualstack_ipv6=host == "::"
            )
            port = listening.getsockname()[1]  # of port 0, which lets the system choose
            made.append(listening)
    except OSError as error:
        for listening in made:
            listening.close()
        raise HostError(
            msg("nothing can listen on {listen} here: {reason}", listen=config.listen, reason=error.strerror),
            hint=msg("Name another with --listen HOST:PORT, or end what listens there."),
        ) from error
    return made
