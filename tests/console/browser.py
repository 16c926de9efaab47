"""What a browser does with forms and cookies, over a real socket, without its rules: a test says what is sent."""

from __future__ import annotations

import http.client
import re
from collections.abc import Mapping, Sequence
from html import unescape
from http.cookies import SimpleCookie
from urllib.parse import urlencode

from tests.gateway.process import WAIT_S


class Answer:
    """Status, headers in lower case (the last of each name), every Set-Cookie, and the text."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status = answer.status
        self.headers = {name.lower(): value for name, value in answer.getheaders()}
        self.set_cookies = [value for name, value in answer.getheaders() if name.lower() == "set-cookie"]
        self.bytes = answer.read()
        self.text = self.bytes.decode()


class Browser:
    """One visitor; `secret` is what the forms of the last page carry."""

    def __init__(self, port: int) -> None:
        self.port, self.secret = port, ""
        self.cookies: dict[str, str] = {}

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Load a page."""
        return self._ask("GET", path, None, headers or {})

    def send(
        self, path: str, fields: Mapping[str, str | Sequence[str]], headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a form with the secret of the last page, unless `fields` name another."""
        sent = {"form_secret": self.secret, **fields}
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._ask("POST", path, urlencode(sent, doseq=True), {**kind, **(headers or {})})

    def log_in(self, key: str) -> Answer:
        """With an admin key, through the page."""
        self.get("/console/login")
        return self.send("/console/login", {"key": key})

    def _ask(self, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        sent = {"Cookie": "; ".join(f"{n}={v}" for n, v in self.cookies.items())} if self.cookies else {}
        try:
            connection.request(method, path, body, {**sent, **headers})
            answer = Answer(connection.getresponse())
        finally:
            connection.close()
        for line in answer.set_cookies:
            for name, morsel in SimpleCookie(line).items():
                if morsel["max-age"] == "0":
                    self.cookies.pop(name, None)
                else:
                    self.cookies[name] = morsel.value
        if found := re.search(r'name="form_secret" value="(\w*)"', answer.text):
            self.secret = unescape(found[1])
        return answer
