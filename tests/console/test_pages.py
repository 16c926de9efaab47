"""What the pages show and do: keys made and ended, nothing typed lost, names that are code shown as text, languages."""

import json
import re
from html import escape

import pytest

from tests.console.browser import Browser
from tests.console.conftest import XSS, state_dir
from tests.gateway.process import Gateway, until
from trimtab.console.pages.listed import PAGES
from trimtab.engine.registry import ServerRecord
from trimtab.messages import msg
from trimtab.supervisor.journal import Journal
from trimtab.supervisor.registry import directory, write

PATHS = [page.path for page in PAGES]
CORPUS = [
    XSS,
    '"><img src=x onerror=alert(1)>',
    "'-alert(1)-'",
    "</textarea><svg/onload=alert(1)>",
    "javascript:alert(1)",
    "{{ 7 * 7 }}",
    "{form_secret}",
    "\u202e\u0000<b>",
]
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def test_a_key_s_life(running: Gateway, browser: Browser) -> None:
    fields = {"action": "create", "label": "ann", "requests_per_minute": "1,000", "endpoints": ["chat", "messages"],
              "expires_days": "30"}  # fmt: skip
    answer = browser.send("/console/keys", fields)
    assert answer.status == 201
    text = re.search(r'value="(tt-[\w-]+)"', answer.text)[1]  # type: ignore[index]
    assert f"export OPENAI_BASE_URL=http://127.0.0.1:{running.port}/v1" in answer.text

    def chat(key: str) -> int:
        return running.ask("POST", "/v1/chat/completions", CHAT, {"Authorization": f"Bearer {key}"})[0]

    until(lambda: chat(text) == 200, "the key works")
    page = browser.get("/console/keys")
    assert text not in page.text
    (key,) = [k for k in json.loads(browser.get("/console/keys?format=json").text)["keys"] if k["label"] == "ann"]
    assert key["limits"] == {"requests_per_minute": 1000, "endpoints": ["chat", "messages"]}
    rotated = browser.send("/console/keys", {"action": "rotate", "id": key["id"], "at_once": "1"})
    assert rotated.status == 201
    until(lambda: chat(text) == 401, "the former text ended")
    assert browser.send("/console/keys", {"action": "revoke", "id": key["id"]}).status == 200
    assert "ann" not in [k["label"] for k in json.loads(browser.get("/console/keys?format=json").text)["keys"]]
    changes = json.loads(browser.get("/console?format=json").text)["changes"]
    assert [c["what"] for c in changes[:3]] == ["key.revoke", "key.rotate", "key.create"]
    assert {c["who"] for c in changes[:3]} == {"admin"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("requests_per_minute", "many"), ("requests_per_minute", "0"), ("tokens_per_day", "-5"),
        ("tokens_per_day", "9" * 30), ("money_per_day", "1.2.3"), ("money_per_month", "¹"), ("expires_days", "never"),
        ("expires_days", "-1"), ("expires_days", "nan"), ("expires_days", "inf"), ("label", "x" * 201),
        ("endpoints", "teleport"),
    ],
)  # fmt: skip
def test_bad_input_is_told_beside_its_field_and_nothing_typed_is_lost(browser: Browser, field: str, value: str) -> None:
    typed = {"label": "bob & co", "owner": "team", "tokens_per_minute": "500", field: value}
    answer = browser.send("/console/keys", {"action": "create", **typed})
    assert answer.status == 400
    assert answer.text.count('class="fault"') == 2
    if field != "endpoints":
        assert f'aria-describedby="{field}-fault"' in answer.text
        for name, text in typed.items():
            assert re.search(rf'name="{name}" type="text" value="{re.escape(escape(text))}"', answer.text)
    told = browser.send("/console/keys?format=json", {"action": "create", **typed})
    assert (told.status, list(json.loads(told.text)["faults"])) == (400, [field])


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"action": "create", "plan": "no-such"}, 409), ({"action": "revoke", "id": "none"}, 409),
        ({"action": "rotate", "id": ""}, 409), ({"action": "fly"}, 400), ({}, 400),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_told(browser: Browser, fields: dict[str, str], status: int) -> None:
    answer = browser.send("/console/keys", fields)
    assert (answer.status, 'role="alert"' in answer.text) == (status, True)


@pytest.mark.parametrize("code", CORPUS)
def test_code_in_labels_and_owners_is_text(browser: Browser, code: str) -> None:
    for fields in ({"label": code, "owner": code}, {"label": code, "owner": code, "models": code, "context": "x"}):
        shown = browser.send("/console/keys", {"action": "create", **fields}).text
        listed = browser.get("/console/keys").text + browser.get("/console").text
        for text in (shown, listed):
            assert "<script>alert" not in text
            assert "<img" not in text
            assert "<svg/" not in text
            assert "49" not in re.findall(r"<th scope=\"row\">([^<]*)", text)
    assert re.findall(r"""value="[^"]*"[^>]*\son\w+=""", listed) == []


@pytest.mark.parametrize("path", PATHS)
def test_a_model_s_name_that_is_code_is_text(browser: Browser, path: str) -> None:
    assert "<script>alert" not in browser.get(path).text


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_each_page_in_both_languages_and_as_json(browser: Browser, path: str, lang: str) -> None:
    answer = browser.get(f"{path}?lang={lang}")
    assert answer.status == 200
    assert (f'<html lang="{"zh-CN" if lang == "zh" else "en"}"' in answer.text) is True
    assert ("概览" in answer.text) is (lang == "zh")
    again = browser.get(path, {"Accept-Language": "fr"})
    assert ("概览" in again.text) is (lang == "zh")
    assert isinstance(json.loads(browser.get(path, {"Accept": "application/json"}).text), dict)


@pytest.mark.parametrize(
    ("header", "zh"),
    [("zh-CN,zh;q=0.9,en;q=0.8", True), ("en,zh;q=0.5", False), ("fr", False), ("", False), ("zh;q=x", False),
     ("de, zh-TW;q=0.3", True)],
)  # fmt: skip
def test_the_browser_s_language_is_spoken(visitor: Browser, header: str, zh: bool) -> None:
    assert ("登录" in visitor.get("/console/login", {"Accept-Language": header}).text) is zh


@pytest.mark.parametrize("theme", ["light", "dark", "auto"])
def test_a_theme_is_remembered(browser: Browser, theme: str) -> None:
    browser.get(f"/console?theme={theme}")
    assert f'data-theme="{theme}"' in browser.get("/console/keys").text
    assert f'data-theme="{theme}"' in browser.get("/console?theme=pink").text


def test_a_model_leads_to_its_replicas_and_fall_backs(browser: Browser) -> None:
    found = {m["name"]: m for m in json.loads(browser.get("/console/models?format=json").text)["models"]}
    assert [r["back_end"] for r in found["m"]["replicas"]] == ["b"]
    assert [f["model"] for f in found[XSS]["fall_back"]] == ["m"]
    assert {"/chat/completions", "/messages"} <= set(found["m"]["endpoints"])


def test_chat_asks_the_gateway_under_a_key_of_its_own(running: Gateway, browser: Browser) -> None:
    assert "<option selected>m</option>" in browser.get("/console/chat?model=m").text
    texts: list[str] = []
    for _ in range(3):
        answer = browser.send("/console/chat?format=json", {"action": "key"})
        assert answer.status == 201
        texts.append(json.loads(answer.text)["key"])

    def chat(text: str, path: str = "/v1/chat/completions") -> int:
        return running.ask("POST", path, CHAT, {"Authorization": f"Bearer {text}"})[0]

    until(lambda: chat(texts[2]) == 200, "the new text works")
    assert [chat(text) for text in texts] == [401, 200, 200]
    assert chat(texts[2], "/v1/embeddings") == 403
    keys = json.loads(browser.get("/console/keys?format=json&all=1").text)["keys"]
    assert len([key for key in keys if key["tags"] == {"console": "chat"}]) == 1
    assert browser.send("/console/chat?format=json", {"action": "key", "form_secret": ""}).status == 403


def test_usage_by_day_model_and_key_and_as_csv(running: Gateway, browser: Browser) -> None:
    made = browser.send("/console/keys", {"action": "create", "label": "=HYPERLINK(1)"}).text
    text = re.search(r'value="(tt-[\w-]+)"', made)[1]  # type: ignore[index]
    until(lambda: running.ask("POST", "/v1/chat/completions", CHAT, {"x-api-key": text, "Authorization": ""})[0] == 200,
          "the key works")  # fmt: skip

    def counted() -> bool:
        rows = json.loads(browser.get("/console/usage?format=json&days=1").text)["by_key"]
        return any(row["label"] == "=HYPERLINK(1)" for row in rows)

    until(counted, "usage is kept")
    page = browser.get("/console/usage?days=7")
    assert "=HYPERLINK(1)" in page.text
    assert '<svg class="chart"' in page.text
    table = browser.get("/console/usage?days=7&format=csv")
    assert table.headers["content-type"].startswith("text/csv")
    head, *rows = table.text.splitlines()
    assert head.startswith("day,key,label,model,requests")
    assert any(",'=HYPERLINK(1),m,1,0,7,2," in row for row in rows)


@pytest.mark.parametrize("days", ["0", "-1", "31", "ten", "<script>", "9" * 50])
def test_a_span_that_is_none_is_told(browser: Browser, days: str) -> None:
    answer = browser.get(f"/console/usage?days={days}")
    assert (answer.status, 'role="alert"' in answer.text, "<script>" in answer.text) == (400, True, False)


def test_servers_and_incidents_are_shown_with_what_their_engines_said_as_text(
    running: Gateway, browser: Browser
) -> None:
    record = ServerRecord(
        name="fallen", state="crashed", pid=1, pid_started=0.0, host="127.0.0.1", port=9,
        base_url="http://127.0.0.1:9/v1", models=(XSS,), created=1.0,
    )  # fmt: skip
    write(state_dir(running), record)
    journal = Journal(directory(state_dir(running), "fallen"))
    journal.append("state", state="starting", previous="installing", reason=msg("{why}", why="asked"))
    journal.append("state", state="crashed", previous="starting", reason=msg("{why}", why=f"its log said {XSS}"))
    journal.close()
    page = browser.get("/console")
    assert (escape(f"its log said {XSS}") in page.text, "<script>alert" in page.text) == (True, False)
    found = json.loads(browser.get("/console?format=json").text)
    assert [(s["name"], s["state"]) for s in found["servers"]] == [("fallen", "crashed")]
    assert [(i["server"], i["cause"]) for i in found["incidents"]] == [("fallen", f"its log said {XSS}")]
