"""From a page's record to HTML, JSON or CSV, with the headers that keep other sites and their scripts out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

import msgspec
from jinja2 import Environment, FunctionLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import Response

from trimtab import shipped
from trimtab.messages import LANGUAGES, Message

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with none at all a browser would name no origin with a form
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
THEMES = ("auto", "light", "dark")
LANG_COOKIE, THEME_COOKIE = "trimtab_lang", "trimtab_theme"
_SCRIPT = "text/javascript; charset=utf-8"
STATIC = {
    "icon.svg": "image/svg+xml",
    "console.css": "text/css; charset=utf-8",
    "console.js": _SCRIPT,
    "chat.js": _SCRIPT,
}


def _source(name: str) -> str:
    return shipped.read("trimtab.console", f"templates/{name}").decode()


_environment = Environment(
    loader=FunctionLoader(_source), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    auto_reload=False,
)  # fmt: skip


@cache
def address(name: str) -> str:
    """Where a static file is: another address once it is another file, so that no browser shows an old one."""
    return f"/console/static/{name}?v={sha256(shipped.read('trimtab.console', f'static/{name}')).hexdigest()[:12]}"


def day(seconds: float | None) -> str:
    """A moment to the minute, in UTC; "" of none."""
    return "" if seconds is None else time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))


def grouped(number: float) -> str:
    """1234567.5 as 1,234,567.5."""
    return f"{number:,.2f}".rstrip("0").rstrip(".") if isinstance(number, float) else f"{number:,}"


_environment.filters |= {"day": day, "grouped": grouped}
_environment.globals["address"] = address


def lang_of(request: Request) -> str:
    """The reader's choice, else the browser's."""
    for chosen in (request.query_params.get("lang"), request.cookies.get(LANG_COOKIE)):
        if chosen in LANGUAGES:
            return str(chosen)
    return _preferred(request.headers.get("accept-language", ""))


def _preferred(header: str) -> str:
    wished: list[tuple[float, str]] = []
    for part in header[:256].split(","):
        tag, _, weight = part.partition(";q=")
        lang = tag.strip().lower().partition("-")[0]
        try:
            wished += [(float(weight or 1), lang)] if lang in LANGUAGES else []
        except ValueError:
            continue
    return max(wished, key=lambda wish: wish[0])[1] if wished else "en"


def theme_of(request: Request) -> str:
    """The reader's choice; "auto" leaves it to the browser."""
    for chosen in (request.query_params.get("theme"), request.cookies.get(THEME_COOKIE)):
        if chosen in THEMES:
            return str(chosen)
    return "auto"


def wants_json(request: Request) -> bool:
    """Whether a page is asked for as JSON."""
    asked = request.query_params.get("format")
    return asked == "json" or (asked is None and request.headers.get("accept", "").startswith("application/json"))


def translator(lang: str) -> Callable[..., str]:
    """What templates call `msg`: a template's own sentence in the reader's language."""
    return lambda template, **values: Message(template, values).text(lang)  # scripts/messages reads them there


def html(request: Request, template: str, values: Mapping[str, Any], status: int = 200) -> Response:
    """A page. A language or theme that the address names is remembered."""
    lang, theme = lang_of(request), theme_of(request)
    words = {
        "lang": lang,
        "theme": theme,
        "msg": translator(lang),
        "here": request.url.path,
        "also": lambda **more: "?" + urlencode({**request.query_params, **more}),
    }
    shown = _environment.get_template(template).render({**values, **words})
    answer = Response(shown, status, HEADERS, media_type="text/html")
    for name, cookie, chosen in (("lang", LANG_COOKIE, lang), ("theme", THEME_COOKIE, theme)):
        if request.query_params.get(name) == chosen:
            answer.set_cookie(cookie, chosen, max_age=365 * 86400, path="/console", httponly=True, samesite="strict")
    return answer


def as_json(record: object, status: int = 200) -> Response:
    """The same record as JSON."""
    return Response(msgspec.json.encode(record), status, HEADERS, media_type="application/json")


def as_csv(text: str, name: str) -> Response:
    """A table to keep."""
    named = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return Response(text, 200, HEADERS | named, media_type="text/csv")


def static(name: str) -> Response | None:
    """One of the few files; None of any other name."""
    if name not in STATIC:
        return None
    cached = HEADERS | {"Cache-Control": "max-age=3600"}
    return Response(shipped.read("trimtab.console", f"static/{name}"), 200, cached, media_type=STATIC[name])
