"""The exception tree, drawn by whose fault it is. It imports nothing of ours but messages.

TrimtabError
├── UsageError      the command line, a launch command or a config file
├── ModelError      the model's files or its id
├── HostError       this machine: disk, permission, port, network, CPU, driver
├── EngineError     vLLM failed or misbehaved
├── UpstreamError   a server we asked gave no usable answer
└── InternalError   ours: a bug in Trimtab
"""

from __future__ import annotations

from typing import ClassVar

from trimtab.messages import Message, msg


class TrimtabError(Exception):
    """Base of all: one sentence naming the thing, and the next step (`hint`)."""

    exit_code: ClassVar[int] = 2
    http_status: ClassVar[int] = 500
    default_hint: ClassVar[Message] = msg("Run the command again with --help.")

    def __init__(self, message: Message, *, hint: Message | None = None) -> None:
        super().__init__(str(message))
        self.message = message
        self.hint = hint if hint is not None else self.default_hint


class UsageError(TrimtabError):
    """The command line, a launch command or a configuration file is wrong."""

    http_status = 400
    default_hint = msg("Run the command again with --help to see what it takes.")


class ModelError(TrimtabError):
    """The model's files or its id are wrong, missing or not allowed."""

    http_status = 404
    default_hint = msg("Check the model's directory or id.")


class HostError(TrimtabError):
    """This machine lacks something: disk, permission, port, network, CPU feature, driver."""

    http_status = 503
    default_hint = msg("Mend what is named on this machine, then run the command again.")


class EngineError(TrimtabError):
    """vLLM failed to start, died or misbehaved."""

    exit_code = 1
    http_status = 502
    default_hint = msg("Read the engine's log: trimtab logs.")


class UpstreamError(TrimtabError):
    """A server that we asked gave no usable answer."""

    http_status = 502
    default_hint = msg("Check that the URL is right and that the server runs.")


class InternalError(TrimtabError):
    """A bug in Trimtab."""

    default_hint = msg("This is a bug in Trimtab: please report it with the command you ran.")
