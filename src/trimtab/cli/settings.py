"""Where Trimtab keeps its files, what the configuration file sets, and the language of this run."""

from __future__ import annotations

import locale
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from trimtab.errors import HostError, UsageError
from trimtab.messages import LANGUAGES, msg


class Dirs(msgspec.Struct, frozen=True):
    """The XDG directories of Trimtab; none is made before something is written to it."""

    config: Path  # config.toml
    cache: Path  # models made on this machine; may be deleted
    data: Path  # engine environments
    state: Path  # one directory per server: journal, log, registry record


def dirs() -> Dirs:
    """The directories in force (XDG_CONFIG_HOME, XDG_CACHE_HOME, XDG_DATA_HOME, XDG_STATE_HOME)."""
    return Dirs(
        _xdg("XDG_CONFIG_HOME", ".config"),
        _xdg("XDG_CACHE_HOME", ".cache"),
        _xdg("XDG_DATA_HOME", ".local/share"),
        _xdg("XDG_STATE_HOME", ".local/state"),
    )


def _xdg(variable: str, below_home: str) -> Path:
    """As the XDG Base Directory Specification has it: a relative path counts as none."""
    named = Path(os.environ.get(variable, ""))
    return (named if named.is_absolute() else Path.home() / below_home) / "trimtab"


def engines_root() -> Path:
    """Where the engines that Trimtab installed live."""
    return dirs().data / "engines"


def config_defaults() -> Mapping[str, Any]:
    """Defaults per verb from config.toml (`[plan]` `gpu = "8xA10"`), below environment and command line.

    UsageError when the file is not TOML, HostError when it cannot be read.
    """
    file = dirs().config / "config.toml"
    try:
        if not file.is_file():
            return {}
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise HostError(
            msg("cannot read the settings {file}: {reason}", file=file, reason=error.strerror),
            hint=msg("Mend its owner or mode, or set XDG_CONFIG_HOME to a directory of yours."),
        ) from error
    except UnicodeDecodeError as error:
        raise _not_toml(file, error) from error
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(file, error) from error


def _not_toml(file: Path, error: ValueError) -> UsageError:
    return UsageError(
        msg("{file} is not valid TOML: {reason}", file=file, reason=error), hint=msg("Mend or remove the file.")
    )


def language(argv: Sequence[str] = ()) -> str:
    """ "en" or "zh": `--lang` in argv, else TRIMTAB_LANG, else the locale."""
    for value in (_asked(argv) or "", os.environ.get("TRIMTAB_LANG", ""), locale.getlocale()[0] or _locale_name()):
        if value[:2].lower() in LANGUAGES:
            return value[:2].lower()
    return "en"


def require_language(argv: Sequence[str]) -> None:
    """UsageError when `--lang` names no language that messages are in."""
    asked = _asked(argv)
    if asked is not None and asked[:2].lower() not in LANGUAGES:
        raise UsageError(
            msg("--lang takes {known}, not {word}", known=", ".join(LANGUAGES), word=repr(asked)),
            hint=msg("Name one of them, or leave --lang out: TRIMTAB_LANG or the locale then says which."),
        )


def _asked(argv: Sequence[str]) -> str | None:
    """The word of the last `--lang` before `--`: "" where none follows, None without one."""
    words = list(argv)[: list(argv).index("--")] if "--" in argv else list(argv)
    asked = None
    for at, word in enumerate(words):
        if word == "--lang":
            asked = words[at + 1] if at + 1 < len(words) else ""
        elif word.startswith("--lang="):
            asked = word.removeprefix("--lang=")
    return asked


def lang() -> str:
    """The language of this run, as the door settled it."""
    return os.environ.get("TRIMTAB_LANG", "en")


def _locale_name() -> str:
    return next((os.environ[v] for v in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(v)), "")
