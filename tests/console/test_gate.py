"""Who gets in: logins by key and by link, forged forms, fixed cookies, frames, wrong keys in a row."""

import json
import re
from pathlib import Path

import pytest

from tests.console.browser import Browser
from tests.console.conftest import CONFIG, XSS, link_of
from tests.gateway.process import ADMIN, KEY, gateway
from trimtab.console.gate import COOKIE, TRIES
from trimtab.console.pages.listed import PAGES

PATHS = [page.path for page in PAGES]


@pytest.mark.parametrize("path", PATHS)
def test_without_a_login_a_page_leads_to_the_login(visitor: Browser, path: str) -> None:
    answer = visitor.get(path)
    assert (answer.status, answer.headers["location"]) == (303, "/console/login")
    told = visitor.get(path, {"Accept": "application/json"})
    assert (told.status, json.loads(told.text)["error"]["code"]) == (401, "login_needed")


def test_a_login_by_key_and_its_end(visitor: Browser) -> None:
    answer = visitor.log_in(ADMIN)
    assert (answer.status, answer.headers["location"]) == (303, "/console")
    (cookie,) = [line for line in answer.set_cookies if line.startswith(f"{COOKIE}=")]
    assert {"HttpOnly", "SameSite=strict", "Path=/console"} <= set(cookie.split("; "))
    assert visitor.get("/console").status == 200
    held = visitor.cookies[COOKIE]
    assert visitor.send("/console/logout", {}).status == 303
    visitor.cookies[COOKIE] = held
    assert visitor.get("/console").status == 303


def test_a_login_gets_a_secret_that_nobody_chose(visitor: Browser) -> None:
    """Session fixation: what was planted before the login, or held before a second one, opens nothing."""
    visitor.cookies[COOKIE] = "planted"
    visitor.log_in(ADMIN)
    first = visitor.cookies[COOKIE]
    assert first != "planted"
    visitor.log_in(ADMIN)
    assert visitor.cookies[COOKIE] != first
    for former in ("planted", first):
        visitor.cookies[COOKIE] = former
        assert visitor.get("/console").status == 303


@pytest.mark.parametrize("key", ["", "no", KEY, "密钥", "x" * 100_000])
def test_a_wrong_key_is_told_and_lets_nobody_in(visitor: Browser, key: str) -> None:
    answer = visitor.log_in(key)
    assert (answer.status, 'role="alert"' in answer.text) == (401, True)
    assert COOKIE not in visitor.cookies
    assert visitor.get("/console").status == 303


@pytest.mark.parametrize("secret", ["", "0" * 64, "密"])
@pytest.mark.parametrize(
    ("path", "fields"),
    [("/console/keys", {"action": "create", "label": "forged"}), ("/console/logout", {})],
)
def test_a_form_without_its_secret_changes_nothing(
    browser: Browser, path: str, fields: dict[str, str], secret: str
) -> None:
    answer = browser.send(path, {**fields, "form_secret": secret})
    assert (answer.status, "nothing was changed" in answer.text) == (403, True)
    assert "forged" not in browser.get("/console/keys").text


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_form_of_another_site_changes_nothing(browser: Browser, headers: dict[str, str]) -> None:
    assert browser.send("/console/keys", {"action": "create", "label": "forged"}, headers).status == 403
    assert "forged" not in browser.get("/console/keys").text


def test_another_login_s_secret_is_refused(browser: Browser, visitor: Browser) -> None:
    visitor.log_in(ADMIN)
    visitor.get("/console")
    assert browser.send("/console/keys", {"action": "create", "form_secret": visitor.secret}).status == 403


def test_a_login_form_of_another_site_is_refused(visitor: Browser) -> None:
    visitor.get("/console/login")
    assert visitor.send("/console/login", {"key": ADMIN}, {"Origin": "https://evil.example"}).status == 403
    assert visitor.send("/console/login", {"key": ADMIN, "form_secret": ""}).status == 403


@pytest.mark.parametrize("path", [*PATHS, "/console/login", "/console/none", "/console/static/console.css"])
def test_no_answer_can_be_framed_or_run_foreign_scripts(browser: Browser, path: str) -> None:
    headers = browser.get(path).headers
    assert headers["x-frame-options"] == "DENY"
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["frame-ancestors"] == policy["default-src"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", [*PATHS, "/console/login"])
def test_pages_have_no_script_or_style_of_their_own_and_name_no_other_host(browser: Browser, path: str) -> None:
    text = browser.get(path).text
    assert re.findall(r"<script(?![^>]* src=)", text) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=|javascript:", text) == []
    assert re.findall(r"""(?:src|href|action)="(?!/console|\?|#)[^"]*""", text) == []
    assert len(text.encode()) < 150_000


@pytest.mark.parametrize(
    "name",
    ["../templates/frame.html", "..%2ftemplates%2fframe.html", "%2e%2e/%2e%2e/app.py", "/etc/passwd", "", "x.css"],
)
def test_only_the_static_files_are_served(visitor: Browser, name: str) -> None:
    assert visitor.get(f"/console/static/{name}").status == 404
    assert visitor.get("/console/static/console.css").headers["content-type"].startswith("text/css")


def test_static_files_have_addresses_that_change_with_them(visitor: Browser) -> None:
    found = re.findall(r'(?:src|href)="(/console/static/[^"]*)"', visitor.get("/console/login").text)
    assert len(found) == 3
    assert all(re.search(r"\?v=[0-9a-f]{12}$", address) and visitor.get(address).status == 200 for address in found)


def test_a_method_that_is_none_is_405(browser: Browser) -> None:
    assert browser.send("/console", {}).status == 405


def test_the_link_logs_in_once_and_every_worker_knows_the_login(tmp_path: Path) -> None:
    with gateway(tmp_path, CONFIG.format(url="http://127.0.0.1:9", xss=XSS), "--workers", "2") as running:
        link = link_of(running)
        first, second = Browser(running.port), Browser(running.port)
        assert "Log in with this link" in first.get(link).text
        token = link.partition("=")[2]
        assert first.send("/console/login", {"link": token}).status == 303
        assert [first.get("/console").status for _ in range(6)] == [200] * 6
        second.get(link)
        assert second.send("/console/login", {"link": token}).status == 401
        assert COOKIE not in second.cookies


def test_after_wrong_keys_in_a_row_the_right_one_must_wait_too(tmp_path: Path) -> None:
    with gateway(tmp_path, CONFIG.format(url="http://127.0.0.1:9", xss=XSS)) as running:
        inside, outside = Browser(running.port), Browser(running.port)
        inside.log_in(ADMIN)
        assert [outside.log_in("wrong").status for _ in range(TRIES)] == [401] * TRIES
        answer = outside.log_in(ADMIN)
        assert (answer.status, int(answer.headers["retry-after"]) > 0) == (429, True)
        assert inside.get("/console").status == 200


def test_a_gateway_may_have_no_console(tmp_path: Path) -> None:
    with gateway(tmp_path, "console: false\n") as running:
        assert running.ask("GET", "/console")[0] == 404
        assert running.ask("GET", "/console/login")[0] == 404
