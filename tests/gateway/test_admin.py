"""The admin API over a real socket, and calls made from its own OpenAPI document."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from tests.gateway.fake_back_end import back_end
from tests.gateway.process import ADMIN, Gateway, gateway, until
from trimtab.gateway.admin import ENDPOINTS
from trimtab.gateway.openapi import document

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
AS_ADMIN = {"Authorization": f"Bearer {ADMIN}"}


def config(url: str) -> str:
    return f"local: false\nback_ends:\n  b: {{url: {url}}}\nmodels:\n  m: {{targets: [{{back_end: b}}]}}\n"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with back_end() as behind, gateway(tmp_path_factory.mktemp("admin"), config(behind.url)) as found:
        yield found


def call(running: Gateway, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    status, _, answer = running.ask(method, path, body, AS_ADMIN)
    return status, json.loads(answer) if answer else None


def chat(running: Gateway, key: str) -> int:
    return running.ask("POST", "/v1/chat/completions", CHAT, {"Authorization": f"Bearer {key}"})[0]


def test_a_key_s_life(running: Gateway) -> None:
    status, made = call(running, "POST", "/admin/keys", {"label": "ann", "limits": {"requests_per_minute": 100}})
    assert status == 201
    text, id = made["text"], made["key"]["id"]
    until(lambda: chat(running, text) == 200, "the key works")
    assert text not in json.dumps(call(running, "GET", "/admin/keys"))
    status, changed = call(running, "PATCH", f"/admin/keys/{id}", {"limits": {"models": ["other"]}})
    assert (status, changed["limits"], changed["label"]) == (200, {"models": ["other"]}, "ann")
    until(lambda: chat(running, text) in (403, 404), "the scope holds")
    call(running, "PATCH", f"/admin/keys/{id}", {"limits": {}})
    status, rotated = call(running, "POST", f"/admin/keys/{id}/rotate", {"grace_s": 0})
    until(lambda: chat(running, rotated["text"]) == 200, "the new text works")
    assert chat(running, text) == 401
    assert call(running, "DELETE", f"/admin/keys/{id}")[0] == 200
    until(lambda: chat(running, rotated["text"]) == 401, "revoked")


def test_plans_are_put_and_removed(running: Gateway) -> None:
    assert call(running, "PUT", "/admin/plans/small", {"concurrency": 2})[1]["limits"] == {"concurrency": 2}
    names = [plan["name"] for plan in call(running, "GET", "/admin/plans")[1]["plans"]]
    assert {"coding", "small"} <= set(names)
    assert call(running, "DELETE", "/admin/plans/small") == (204, None)
    assert call(running, "GET", "/admin/plans/small")[0] == 404


def test_usage_is_added_up(running: Gateway) -> None:
    made = call(running, "POST", "/admin/keys", {"label": "usage"})[1]
    until(lambda: chat(running, made["text"]) == 200, "the key works")
    path = f"/admin/usage?by=model,back_end&key={made['key']['id']}&since={time.time() - 3600}"
    until(lambda: call(running, "GET", path)[1]["usage"] != [], "usage")
    (row,) = call(running, "GET", path)[1]["usage"]
    assert row["group"] == {"model": "m", "back_end": "b"}
    assert (row["requests"], row["prompt_tokens"], row["completion_tokens"]) == (1, 7, 2)


def test_back_ends_and_reload(running: Gateway) -> None:
    status, found = call(running, "GET", "/admin/back-ends")
    (only,) = found["back_ends"]
    assert (status, only["name"], only["ready"], "m" in only["models"]) == (200, "b", True, True)
    status, found = call(running, "POST", "/admin/reload")
    assert (status, "m" in found["models"]) == (200, True)


def test_a_reload_of_a_faulty_file_is_refused_with_its_fault(tmp_path: Path) -> None:
    with gateway(tmp_path, config("http://127.0.0.1:9")) as found:
        (tmp_path / "gateway.yaml").write_text("stor: x\n")
        status, answer = call(found, "POST", "/admin/reload")
        assert (status, "line 1: there is no field 'stor'" in answer["error"]["message"]) == (409, True)


def test_a_reload_reaches_every_worker(tmp_path: Path) -> None:
    with gateway(tmp_path, config("http://127.0.0.1:9"), "--workers", "2") as found:
        (tmp_path / "gateway.yaml").write_text(config("http://127.0.0.1:9").replace("  m:", "  n:"))
        assert call(found, "POST", "/admin/reload")[0] == 200
        found.said("(?s)reloaded: 1 models.*reloaded: 1 models")


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Authorization": "Bearer no"}, 401), ({"Authorization": ""}, 401), ({}, 403), ({"x-api-key": ADMIN}, 403)],
)
def test_only_admin_keys_open_it(running: Gateway, headers: dict[str, str], status: int) -> None:
    found, _, body = running.ask("GET", "/admin/keys", None, headers)
    assert (found, bool(json.loads(body)["error"]["message"])) == (status, True)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/admin/keys", {"labl": "x"}, 400),
        ("POST", "/admin/keys", {"plan": "no-such"}, 409),
        ("POST", "/admin/keys", {"expires": 1}, 409),
        ("POST", "/admin/keys", {"limits": {"concurrency": -1}}, 400),
        ("POST", "/admin/keys", None, 400),
        ("POST", "/admin/keys", {"expires": 1e300}, 400),
        ("POST", "/admin/keys", {"label": "a\0"}, 400),
        ("POST", "/admin/keys", {"admin": True, "plan": "coding"}, 409),
        ("GET", "/admin/usage?key=%00", None, 400),
        ("GET", "/admin/usage?sinse=5", None, 400),
        ("GET", "/admin/keys/none", None, 404),
        ("PATCH", "/admin/keys/none", {}, 404),
        ("PUT", "/admin/plans/bad name!", {}, 409),
        ("GET", "/admin/usage?by=colour", None, 400),
        ("GET", "/admin/usage?since=yesterday", None, 400),
        ("GET", "/admin/nothing", None, 404),
        ("PUT", "/admin/keys", {}, 405),
    ],
)
def test_bad_calls_are_told_in_json(running: Gateway, method: str, path: str, body: Any, status: int) -> None:
    found, answer = call(running, method, path.replace(" ", "%20"), body)
    assert (found, bool(answer["error"]["message"])) == (status, True)


def test_the_document_is_openapi_and_names_every_endpoint(running: Gateway) -> None:
    status, found = call(running, "GET", "/admin/openapi.json")
    assert status == 200
    assert found == json.loads(json.dumps(document(ENDPOINTS)))
    for schema in found["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


schema = schemathesis.openapi.from_dict(json.loads(json.dumps(document(ENDPOINTS))))


@schema.parametrize()
@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_calls_made_from_the_document_are_answered_as_it_says(running: Gateway, case: schemathesis.Case) -> None:
    case.call_and_validate(base_url=f"http://127.0.0.1:{running.port}", headers=AS_ADMIN)
