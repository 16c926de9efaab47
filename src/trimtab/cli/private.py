"""What is private on this host: secrets in the environment, home directories, names of the user and the host."""

from __future__ import annotations

import os
import pwd
import re
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path

from trimtab.engine.redaction import Private

_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSW|CREDENTIAL|_PAT$|_PWD$", re.IGNORECASE)
_LEAST = 8  # a shorter value is a switch or a number


def private_of(secrets: Iterable[str], environ: Mapping[str, str] | None = None) -> Private:
    """`secrets` are those known beside: a server's key."""
    env = os.environ if environ is None else environ
    found = [value for name, value in env.items() if _SECRET.search(name) and _is_secret(value)]
    host = socket.gethostname()
    homes = {str(Path.home()), env.get("HOME", ""), _entry()[1]}
    users = {_entry()[0], env.get("USER", ""), env.get("LOGNAME", ""), env.get("SUDO_USER", "")}
    return Private(
        secrets=tuple(secret for secret in (*secrets, *found) if secret),
        homes=tuple(home for home in homes if len(home) > 1),
        users=tuple(user for user in users if user),
        hosts=tuple(name for name in {host, host.partition(".")[0]} if name),
    )


def _is_secret(value: str) -> bool:
    """A path or a plain word under such a name (SSH_AUTH_SOCK, KEYBOARD=us) is none."""
    return len(value) >= _LEAST and not value.startswith(("/", "~")) and " " not in value


def _entry() -> tuple[str, str]:
    """Name and home of this user as the system knows them; empty in a container without an entry."""
    try:
        entry = pwd.getpwuid(os.getuid())
    except KeyError:
        return "", ""
    return entry.pw_name, entry.pw_dir
