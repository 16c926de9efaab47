"""`trimtab compare --a URL,MODEL --b URL,MODEL`: the same prompts to two back ends, side by side."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import msgspec

from trimtab import __version__
from trimtab.bench.compare import Live, Plan, compare
from trimtab.bench.comparing import checks
from trimtab.bench.comparing.figures import Figures, figures
from trimtab.bench.comparing.prompts import Prompt, read_prompts, shipped_prompts
from trimtab.bench.comparing.sides import Comparison, Price, Side, read_saved
from trimtab.bench.endpoint import Target, is_url
from trimtab.bench.wire import Bounds
from trimtab.cli import options, pages
from trimtab.cli.format.compare import as_json, as_text
from trimtab.cli.progress import drawn
from trimtab.cli.settings import lang
from trimtab.errors import UsageError
from trimtab.messages import msg
from trimtab.supervisor.progress import Observer, Progress


def run(
    prompts: options.PromptFile = None,
    a: options.SideA = "",
    b: options.SideB = None,
    key: options.Key = None,
    key_a: options.KeyA = None,
    key_b: options.KeyB = None,
    judge: options.Judge = None,
    judge_key: options.JudgeKey = None,
    price_a: options.PriceA = None,
    price_b: options.PriceB = None,
    repeats: options.Repeats = 1,
    max_tokens: options.AnswerTokens = 256,
    concurrency: options.Concurrency = None,
    seed: options.Seed = 0,
    timeout: options.FirstTokenTimeout = 300.0,
    html: options.HtmlFile = None,
    json: options.AsJson = False,
) -> int:
    """Compare two back ends: the same prompts to both, answers side by side, latency with paired statistics."""
    pages.ready(html)
    given = _read(prompts)
    one, asked_a = _side(a, key_a or key, price_a, "--a")
    other, asked_b = _side(b, key_b or key, price_b, "--b") if b is not None else (None, ())
    chosen = _prompts(given, asked_a or asked_b, asked_b)
    checks.require(chosen)
    target = _target(judge, judge_key or key) if judge is not None else None
    plan = Plan(chosen, one, other, target, seed, repeats, max_tokens, concurrency or 1, Bounds(first_s=timeout))
    with drawn(lang()) as show:
        found = compare(plan, partial(_show, show))
    told = figures(found)
    print(as_json(found, told, __version__) if json else as_text(found, told, lang()))
    if html is not None:
        from trimtab.cli.format.compare_page import page_of

        secrets = [text for text in (key, key_a, key_b, judge_key) if text]
        pages.write(html, page_of(found, told, pages.command(secrets), __version__), lang())
    return exit_code(found, told)


def exit_code(found: Comparison, told: Figures) -> int:
    """0: all answered and every check passed; 1: not so; 130: interrupted."""
    if found.interrupted:
        return 130
    missed = any(told.failures) or any(passed < of for passed, of in told.checks)
    return 1 if missed or (found.b is not None and not told.pairs) else 0


def _show(show: Observer, done: int, failed: int, total: int) -> None:
    show(Progress(msg("asking"), msg("{failed} failed", failed=failed).text(lang()), done, total))


def _read(path: Path | None) -> tuple[Prompt, ...]:
    if path is None:
        return ()
    try:
        return read_prompts(path.read_bytes())
    except OSError as error:
        raise UsageError(
            msg("cannot read the prompts {path}: {reason}", path=path, reason=error.strerror or error)
        ) from None


def _side(text: str, key: str | None, price: str | None, option: str) -> tuple[Live | Side, tuple[Prompt, ...]]:
    """A server to be asked, or the side of an earlier run with the prompts it was asked."""
    if not text:
        raise UsageError(msg("{option} names no back end", option=option), hint=_HINT)
    if is_url(text.partition(",")[0]):
        return Live(_target(text, key), _price(price)), ()
    name, _, which = text.rpartition(",") if text.endswith((",a", ",b")) else (text, "", "")
    try:
        body = Path(name).read_bytes()
    except OSError as error:
        raise UsageError(
            msg("{text} is neither a URL nor a file that can be read: {reason}", text=name,
                reason=error.strerror or error), hint=_HINT,
        ) from None  # fmt: skip
    run, side = read_saved(body, which, name)
    return (msgspec.structs.replace(side, price=_price(price)) if price else side), run.prompts


_HINT = msg("Write --a http://HOST:PORT,MODEL, or the FILE.json of an earlier `trimtab compare --json`.")


def _target(text: str, key: str | None) -> Target:
    url, _, model = text.partition(",")
    return Target(url, key or None, model or None)


def _price(text: str | None) -> Price | None:
    if text is None:
        return None
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != 2 or not all(0 <= value < 1e9 for value in values):
        raise UsageError(
            msg("{text!r} is no price", text=text),
            hint=msg("Write PROMPT,ANSWER for a million tokens each, e.g. 0.15,0.60."),
        )
    return Price(*values)


def _prompts(given: tuple[Prompt, ...], saved: tuple[Prompt, ...], saved_too: tuple[Prompt, ...]) -> tuple[Prompt, ...]:
    """Those of the file, of the earlier run, or Trimtab's; UsageError where an earlier run was asked others."""
    for other in (saved, saved_too):
        if other and other != (given or saved):
            raise UsageError(
                msg("the earlier run was asked other prompts"),
                hint=msg("Leave the file of prompts out: those of the earlier run are used."),
            )
    return given or saved or shipped_prompts()
