"""Run one verb and turn its outcome into an exit code: the only try/except around the whole program."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import typer
from typer.exceptions import TyperException

from trimtab import __version__
from trimtab.cli.settings import config_defaults, language, require_language
from trimtab.errors import HostError, InternalError, TrimtabError
from trimtab.messages import msg
from trimtab.supervisor.stopping import interrupted_by_signals

# One line a verb: its module, and the Typer app or function in it. Only the module of the verb asked for is imported.
VERBS: dict[str, str] = {
    "explain": "trimtab.cli.explain:run",
    "flags": "trimtab.cli.flags:app",
    "budget": "trimtab.cli.budget:run",
    "lint": "trimtab.cli.lint:run",
    "check": "trimtab.cli.check:run",
    "up": "trimtab.cli.up:run",
    "engine": "trimtab.cli.engine:app",
    "plan": "trimtab.cli.plan:run",
    "verify": "trimtab.cli.verify:run",
    "bench": "trimtab.cli.bench:run",
    "compare": "trimtab.cli.compare:run",
    "tune": "trimtab.cli.tune:run",
    "ps": "trimtab.cli.ps:run",
    "logs": "trimtab.cli.logs:run",
    "history": "trimtab.cli.history:run",
    "top": "trimtab.cli.top:run",
    "report": "trimtab.cli.report:run",
    "down": "trimtab.cli.down:run",
    "doctor": "trimtab.cli.doctor:run",
    "gateway": "trimtab.cli.gateway:app",
    "keys": "trimtab.cli.keys:app",
    "connect": "trimtab.cli.connect:run",
}

BARE = {"--self-heal": "--self-heal=on"}  # options that may stand without a value, which Typer does not know

_REFUSALS = (
    errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR,
    errno.EISDIR, errno.EMFILE, errno.EIO,
)  # fmt: skip
EXIT_OK, EXIT_FINDINGS, EXIT_BROKEN, EXIT_INTERRUPTED = 0, 1, 2, 130


def run(argv: Sequence[str]) -> int:
    """Run `trimtab` with `argv` (without the program name); the exit code. Reports go to stdout, the rest to stderr."""
    lang = os.environ["TRIMTAB_LANG"] = language(argv)
    try:
        require_language(argv)
        words, rest = split(argv)
        words = [BARE.get(word, word) for word in without_language(words)]
        command = command_tree(words)
        defaults = config_defaults()
        with interrupted_by_signals():
            result = command.main(
                args=words, obj=rest, prog_name="trimtab", standalone_mode=False, default_map=defaults
            )
        if result == EXIT_INTERRUPTED:
            raise KeyboardInterrupt  # Typer turned it into a status
        if sys.stdout is not None:  # None: started with it closed
            sys.stdout.flush()
        return result if isinstance(result, int) else EXIT_OK
    except typer.Exit as stop:
        return int(stop.exit_code)
    except TyperException as error:
        return _refused(error, lang)
    except (KeyboardInterrupt, typer.Abort):
        print(f"trimtab: {msg('interrupted').text(lang)}", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return EXIT_OK
    except TrimtabError as error:
        print(f"trimtab: {error.message.text(lang)}", file=sys.stderr)
        print(f"  -> {error.hint.text(lang)}", file=sys.stderr)
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the door: whatever reaches here is our bug and is shown as one
        return _unexpected(error, lang)


def _refused(error: TyperException, lang: str) -> int:
    """Words that no verb takes: what Typer says of them, an unknown option in our own words; no words: the help."""
    text = error.format_message()
    if text.startswith("Usage:"):
        print(text, file=sys.stderr)
    elif text:
        option, near = getattr(error, "option_name", None), getattr(error, "possibilities", None)
        hint = msg("Run the command again with --help to see what it takes.")
        if option and near is not None:
            text = msg("there is no option {option}", option=option).text(lang)
            hint = msg("Did you mean {near}? vLLM's own flags stand after --", near=near[0]) if near else hint
        elif option:
            text = msg("{option} needs a value", option=option).text(lang)
        print(f"trimtab: {text}\n  -> {hint.text(lang)}", file=sys.stderr)
    return EXIT_BROKEN


def _unexpected(error: Exception, lang: str) -> int:
    """What no verb foresaw: this machine refuses a write, or a bug of ours, which shows its traceback."""
    found: TrimtabError
    if isinstance(error, OSError) and error.errno in _REFUSALS:
        file = error.filename or msg("the report")
        found = HostError(msg("cannot read or write {file}: {reason}", file=file, reason=error.strerror))
    else:
        traceback.print_exception(error)
        found = InternalError(msg("{kind}: {text}", kind=type(error).__name__, text=str(error)))
    print(f"trimtab: {found.message.text(lang)}\n  -> {found.hint.text(lang)}", file=sys.stderr)
    return found.exit_code


def split(argv: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """The words before the first `--`, and those after it (None without one): a verb reads the latter as `ctx.obj`."""
    words = list(argv)
    if "--" not in words:
        return words, None
    at = words.index("--")
    return words[:at], words[at + 1 :]


def without_language(words: Sequence[str]) -> list[str]:
    """The words without `--lang`, which may stand anywhere and was read already."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--lang":
            next(rest, None)
        elif not word.startswith("--lang="):
            kept.append(word)
    return kept


def command_tree(argv: Sequence[str]) -> Any:
    """The Typer command tree, holding only the verb that `argv` names, or all of them when it names none."""
    asked = next((word for word in argv if word in VERBS), None)
    app = typer.Typer(
        no_args_is_help=True, add_completion=True, rich_markup_mode=None, pretty_exceptions_enable=False, help=_HELP
    )
    app.callback()(_root)
    for verb in [asked] if asked else VERBS:
        module, _, name = VERBS[verb].partition(":")
        loaded = import_module(module)
        target = getattr(loaded, name)
        if isinstance(target, typer.Typer):
            app.add_typer(target, name=verb)
        else:
            app.command(verb, context_settings=getattr(loaded, "CONTEXT_SETTINGS", None))(target)
    return typer.main.get_command(app)


_HELP = "Plan, lint, launch, verify and diagnose vLLM servers on your own GPUs."


def _root(
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
    lang: str = typer.Option("", "--lang", envvar="TRIMTAB_LANG", help="Language of messages: en or zh."),
) -> None:
    if version:
        print(f"trimtab {__version__}")
        raise typer.Exit
