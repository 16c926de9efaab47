"""A gateway with a console, shared by the tests of this room, and a browser that is logged in."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.browser import Browser
from tests.gateway.fake_back_end import back_end
from tests.gateway.process import ADMIN, Gateway, gateway

XSS = "<script>alert(1)</script>"
CONFIG = """\
local: true
back_ends:
  b: {{url: {url}}}
models:
  m: {{targets: [{{back_end: b}}]}}
  "{xss}": {{targets: [{{back_end: b, model: m}}], fall_back: [m]}}
"""


@pytest.fixture(scope="package")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with (
        back_end() as behind,
        gateway(tmp_path_factory.mktemp("console"), CONFIG.format(url=behind.url, xss=XSS)) as found,
    ):
        yield found


@pytest.fixture
def visitor(running: Gateway) -> Browser:
    """Somebody without a login."""
    return Browser(running.port)


@pytest.fixture(scope="package")
def _logged_in(running: Gateway) -> dict[str, str]:
    browser = Browser(running.port)
    assert browser.log_in(ADMIN).status == 303
    return browser.cookies


@pytest.fixture
def browser(running: Gateway, _logged_in: dict[str, str]) -> Browser:
    """An admin."""
    found = Browser(running.port)
    found.cookies = dict(_logged_in)
    found.get("/console")
    return found


def link_of(running: Gateway) -> str:
    """The path of the link that the gateway printed after its first line; read once."""
    assert running.child.stdout is not None
    for line in running.child.stdout:
        if found := re.search(r"/console/login\?link=\S+", line):
            return found[0]
    raise AssertionError("no link was printed")


def state_dir(running: Gateway) -> Path:
    """Where the gateway looks for servers of this host."""
    return running.log.parent / "state" / "trimtab"
