"""systemd service units: of vLLM itself, and of Trimtab as its supervisor."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from trimtab.plan.render.launch import Launch
from trimtab.plan.render.shelltext import comment

PLAIN = re.compile(r"[\w@+=:,./-]+", re.ASCII)
ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def render(launch: Launch) -> str:
    """The unit; systemd restarts vLLM when it fails, and gives up after five failures in an hour."""
    launch.require_absolute()
    program = [launch.program] if launch.program else ["/usr/bin/env", "vllm"]
    words = [*program, "serve", *launch.arguments]
    lines = [
        comment(f"{launch.about} File: /etc/systemd/system/{launch.name}.service"),
        "[Unit]",
        f"Description={_specified(_one_line(launch.about))}",
        "Wants=network-online.target",
        "After=network-online.target",
        "StartLimitIntervalSec=3600",
        "StartLimitBurst=5",
        "",
        "[Service]",
        "Type=exec",
        *(f"Environment={_word(f'{name}={value}', '%')}" for name, value in launch.env.items()),
        comment("VLLM_API_KEY, HF_TOKEN and other secrets:"),
        f"EnvironmentFile=-/etc/default/{launch.name}",
        *([] if launch.program else [comment("vLLM in an environment of its own: its path instead of env vllm.")]),
        f"ExecStart={_lines(words)}",
        "Restart=on-failure",
        "RestartSec=10",
        "KillMode=mixed",
        "TimeoutStopSec=60",
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    return "\n".join(lines) + "\n"


class Supervised(msgspec.Struct, frozen=True, kw_only=True):
    """A server that Trimtab keeps alive under systemd."""

    name: str
    words: Sequence[str]  # of ExecStart
    env: Mapping[str, str]
    user: str
    directory: str
    stop_s: int  # what ending it may take


def render_supervised(server: Supervised) -> str:
    """The unit of a supervisor that tells systemd when it is ready, how it is, and that it lives.

    systemd starts it again only when the supervisor itself died: it restarts the engine by itself.
    """
    lines = [
        comment(f"vLLM kept alive by Trimtab. File: /etc/systemd/system/{server.name}.service"),
        "[Unit]",
        f"Description={_specified(server.name)}: vLLM under Trimtab",
        "Wants=network-online.target",
        "After=network-online.target",
        "",
        "[Service]",
        "Type=notify",
        "NotifyAccess=main",
        f"User={_specified(server.user)}",
        f"WorkingDirectory={_specified(server.directory)}",
        *(f"Environment={_word(f'{name}={value}', '%')}" for name, value in server.env.items()),
        comment("HF_TOKEN and other secrets; the server's key is the one it had:"),
        f"EnvironmentFile=-/etc/default/{server.name}",
        f"ExecStart={_lines(list(server.words))}",
        "Restart=on-abnormal",
        "RestartSec=10",
        "WatchdogSec=180",
        "TimeoutStartSec=infinity",
        f"TimeoutStopSec={server.stop_s}",
        "KillMode=mixed",
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    return "\n".join(lines) + "\n"


def _lines(words: list[str]) -> str:
    """One flag a line, as systemd continues lines."""
    text = ""
    for word in words:
        text += (" \\\n  " if word.startswith("--") else " " if text else "") + _word(word, "%$")
    return text


def _word(text: str, doubled: str) -> str:
    """A word of a command line (systemd.service(5), COMMAND LINES); characters of `doubled` stand for themselves."""
    if PLAIN.fullmatch(text):
        return text
    escaped = "".join(ESCAPES.get(c, c * 2 if c in doubled else c) for c in text)
    return f'"{escaped}"'


def _specified(text: str) -> str:
    return text.replace("%", "%%")


def _one_line(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f]+|\\$", " ", text)
