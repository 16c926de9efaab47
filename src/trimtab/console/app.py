"""The console as an ASGI application: addresses, the gate before them, and a thread in which pages are made."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from trimtab.console import gate, rendering
from trimtab.console.asked import Asked, House, Page, Shown
from trimtab.console.pages.listed import PAGES
from trimtab.errors import TrimtabError
from trimtab.gateway.admin import Fault, Refusal
from trimtab.gateway.mounted import Application
from trimtab.gateway.request import Refused
from trimtab.gateway.seat import Seat
from trimtab.gateway.store.audit import add_entry
from trimtab.gateway.store.database import Store
from trimtab.gateway.store.logins import close_login, key_of_login, open_login, use_link
from trimtab.messages import Message, msg

T = TypeVar("T")
LINK = "link"  # who a login by a one-time link is, in the audit log
MOST_FIELDS = 500


class Console:
    """The application and what it keeps open."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._store: Store | None = None
        self._thread = ThreadPoolExecutor(1, "trimtab-console")
        self._throttle = gate.Throttle()
        routes = [Route(p.path, self._page(p), methods=["GET", "POST"] if p.act else ["GET"]) for p in PAGES]
        routes += [
            Route("/console/", _to_start, methods=["GET"]),
            Route("/console/login", self._login, methods=["GET", "POST"]),
            Route("/console/logout", self._logout, methods=["POST"]),
            Route("/console/static/{name}", _static, methods=["GET"]),
        ]
        handlers = {HTTPException: _not_served, TrimtabError: _failed}
        served = Starlette(routes=routes, exception_handlers=handlers)  # type: ignore[arg-type]
        served.router.redirect_slashes = False
        self.application: Application = served

    def close(self) -> None:
        """Wait for the page that is being made, and close the store."""
        self._thread.shutdown(wait=True)
        if self._store is not None:
            self._store.close()

    async def _asked(self, work: Callable[[Store], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._with_store, work)

    def _with_store(self, work: Callable[[Store], T]) -> T:
        if self._store is None:
            self._store = self._seat.open_store()
        return work(self._store)

    def _page(self, page: Page) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            login = request.cookies.get(gate.COOKIE, "")
            who = await self._who(login)
            if who is None:
                return _kept_out(request)
            form = await _form(request)
            if request.method == "POST" and not _is_ours(request, login, form):
                return _forged(request)
            asked = Asked(dict(request.query_params), form, rendering.lang_of(request), time.time(), who)
            if page.csv is not None and asked.query.get("format") == "csv":
                written = page.csv
                text = await self._asked(lambda store: written(self._house(store, request), asked))
                return rendering.as_csv(text, page.path.rpartition("/")[2])
            shown = await self._asked(lambda store: self._made(page, self._house(store, request), asked))
            return _answered(request, page, shown, gate.form_secret(login))

        return answer

    def _made(self, page: Page, house: House, asked: Asked) -> Shown:
        if asked.form and page.act is not None:
            return page.act(house, asked)
        found = page.show(house, asked)
        return found if isinstance(found, Shown) else Shown(found)

    def _house(self, store: Store, request: Request) -> House:
        seat = self._seat
        config = seat.config()
        url = f"{'https' if config.tls_certificate else 'http'}://{request.headers.get('host', '')}"
        return House(
            store, seat.back_ends(), seat.routes(), config, seat.in_flight(), seat.state_dir, url
        )  # fmt: skip

    async def _who(self, login: str) -> str | None:
        """Whose login it is; None where it is none, or its key holds no more."""
        if not login:
            return None
        id = await self._asked(lambda store: key_of_login(store, login))
        if not id:
            return LINK if id is not None else None
        key = self._seat.key(id)
        now = time.time()
        if key is None or not key.admin or key.revoked is not None or (key.expires is not None and now >= key.expires):
            return None
        return id

    async def _login(self, request: Request) -> Response:
        if request.method == "GET":
            return _login_page(request, link=request.query_params.get("link", ""))
        form = await _form(request)
        link = (form.get("link") or ("",))[0]
        if not _is_ours(request, request.cookies.get(gate.BEFORE_COOKIE, ""), form):
            told = msg("This form was not sent from this page, or the page was open too long. Try again.")
            return _login_page(request, told, 403, link)
        peer = request.client.host if request.client is not None else ""
        if (wait_s := self._throttle.wait_s(peer)) > 0:
            told = msg("Too many wrong keys. Try again in {n} seconds.", n=int(wait_s) + 1)
            answer = _login_page(request, told, 429, link)
            answer.headers["Retry-After"] = str(int(wait_s) + 1)
            return answer
        id, wrong = await self._opened_by((form.get("key") or ("",))[0].strip(), link)
        if wrong is not None:
            self._throttle.wrong(peer)
            return _login_page(request, wrong, 401)
        return await self._let_in(request, id, peer)

    async def _opened_by(self, text: str, link: str) -> tuple[str, Message | None]:
        """The id of the admin key, "" for a link; or what is wrong."""
        if link and not text:
            if await self._asked(lambda store: use_link(store, link)):
                return "", None
            return "", msg("This link was used or has ended. Log in with an admin key: trimtab keys create --admin")
        try:
            return self._seat.admin_key(text.encode()).id, None
        except Refused as refused:
            return "", msg("This key opens nothing here: {why}", why=refused.message)

    async def _let_in(self, request: Request, id: str, peer: str) -> Response:
        """A login with a secret that nobody knew before; the one that the browser brought, if any, ends."""
        former = request.cookies.get(gate.COOKIE, "")

        def opened(store: Store) -> str:
            if former:
                close_login(store, former)
            add_entry(store, id or LINK, "login", peer)
            return open_login(store, id).reveal()

        answer = RedirectResponse("/console", 303, rendering.HEADERS)
        _keep(answer, request, gate.COOKIE, await self._asked(opened), tls=bool(self._seat.config().tls_certificate))
        answer.delete_cookie(gate.BEFORE_COOKIE, path="/console")
        return answer

    async def _logout(self, request: Request) -> Response:
        login = request.cookies.get(gate.COOKIE, "")
        if not _is_ours(request, login, await _form(request)):
            return _forged(request)
        await self._asked(lambda store: close_login(store, login))
        answer = RedirectResponse("/console/login", 303, rendering.HEADERS)
        answer.delete_cookie(gate.COOKIE, path="/console")
        return answer


async def _form(request: Request) -> dict[str, tuple[str, ...]]:
    """The fields of a form; none of what is no form."""
    if request.method != "POST":
        return {}
    text = (await request.body()).decode("utf-8", "replace")
    try:
        found = parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        return {}
    return {name: tuple(values) for name, values in found.items()}


def _is_ours(request: Request, login: str, form: dict[str, tuple[str, ...]]) -> bool:
    return gate.is_own_page(request) and gate.is_form_secret(login, (form.get("form_secret") or ("",))[0])


def _keep(answer: Response, request: Request, name: str, value: str, *, tls: bool) -> None:
    secure = tls or request.headers.get("x-forwarded-proto") == "https"
    answer.set_cookie(name, value, path="/console", httponly=True, samesite="strict", secure=secure)


def _answered(request: Request, page: Page, shown: Shown, secret: str) -> Response:
    if rendering.wants_json(request):
        return rendering.as_json(shown.page, shown.status)
    lang = rendering.lang_of(request)
    values = {
        "page": shown.page, "title": page.title.text(lang), "form_secret": secret,
        "pages": [(p.path, p.title.text(lang)) for p in PAGES],
    }  # fmt: skip
    return rendering.html(request, page.template, values, shown.status)


def _login_page(request: Request, told: Message | None = None, status: int = 200, link: str = "") -> Response:
    before = request.cookies.get(gate.BEFORE_COOKIE, "") or secrets.token_urlsafe(32)
    lang = rendering.lang_of(request)
    values = {
        "told": told.text(lang) if told is not None else "", "link": link, "form_secret": gate.form_secret(before),
        "title": msg("Log in").text(lang), "pages": [],
    }  # fmt: skip
    answer = rendering.html(request, "login.html", values, status)
    _keep(answer, request, gate.BEFORE_COOKIE, before, tls=False)
    return answer


def _kept_out(request: Request) -> Response:
    if rendering.wants_json(request):
        return _told(request, 401, msg("Log in first."), msg("Open /console/login in this browser."))
    return RedirectResponse("/console/login", 303, rendering.HEADERS)


def _forged(request: Request) -> Response:
    return _told(
        request, 403, msg("This form was not sent from a page of this console, and nothing was changed."),
        msg("Go back, load the page again and send it from there."),
    )  # fmt: skip


def _told(request: Request, status: int, what: Message, hint: Message) -> Response:
    lang = rendering.lang_of(request)
    if rendering.wants_json(request):
        code = {401: "login_needed", 403: "form_refused", 404: "not_found", 405: "method_not_allowed"}
        return rendering.as_json(Refusal(Fault(code.get(status, "error"), what.text(lang), hint.text(lang))), status)
    values = {"title": what.text(lang), "hint": hint.text(lang), "pages": [(p.path, p.title.text(lang)) for p in PAGES],
              "form_secret": ""}  # fmt: skip
    return rendering.html(request, "told.html", values, status)


async def _to_start(request: Request) -> Response:
    return RedirectResponse("/console", 303, rendering.HEADERS)


async def _static(request: Request) -> Response:
    found = rendering.static(request.path_params["name"])
    if found is None:
        raise HTTPException(404)
    return found


async def _not_served(request: Request, error: HTTPException) -> Response:
    answer = _told(request, error.status_code, msg("There is no such page here."), msg("Choose one of those above."))
    answer.headers.update(error.headers or {})
    return answer


async def _failed(request: Request, error: TrimtabError) -> Response:
    return _told(request, error.http_status, error.message, error.hint)
