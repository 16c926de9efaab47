"""Real client programs against the real engine behind the gateway: key, model, a whole stream, errors as errors."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import MODEL, Outside, admin
from tests.clients.programs import ALL, Program
from tests.clients.running import Ran, Run
from tests.clients.small_model import ANSWER
from tests.fakes.listening import listening
from tests.gateway.process import Gateway, until

pytestmark = pytest.mark.vllm
WRONG = "tt-no-key-of-this-gateway"


@dataclass(frozen=True)
class Both:
    """A run with the right key and one with a wrong one, and what was seen of them."""

    program: Program
    key: str
    right: Ran
    wrong: Ran
    left: list[str]


@pytest.fixture(scope="module", params=ALL, ids=lambda program: program.name)
def both(
    request: pytest.FixtureRequest, installed: Path, front: Gateway, tmp_path_factory: pytest.TempPathFactory
) -> Both:
    """The two runs go side by side."""
    program: Program = request.param
    made: Any = admin(front, "POST", "/admin/keys", {"label": program.name, "limits": {"models": [MODEL]}})
    bearer = {"Authorization": f"Bearer {made['text']}"}
    until(lambda: front.ask("GET", "/v1/models", headers=bearer)[0] == 200, "the key is known")
    home, url = tmp_path_factory.mktemp(program.name), f"http://127.0.0.1:{front.port}"
    outside = Outside()
    with listening(outside):
        runs = [
            Run(
                program,
                installed,
                home / name,
                {"url": url, "key": key, "right": made["text"], "model": MODEL},
                outside.url,
            )
            for name, key in (("right", made["text"]), ("wrong", WRONG))
        ]
        right, wrong = (run.end() for run in runs)
    return Both(program, made["key"]["id"], right, wrong, outside.asked)


def requests(front: Gateway, key: str) -> list[dict[str, Any]]:
    """What the access log has of a key, first to last."""
    lines = (front.log.parents[1] / "access.log").read_text().splitlines()
    return [line for line in map(json.loads, lines) if line.get("key") == key]


def test_the_answer_arrives_under_its_key_and_model(both: Both, front: Gateway) -> None:
    assert both.right.code == 0, both.right.said
    assert ANSWER in both.right.said
    until(lambda: bool(requests(front, both.key)), "the request in the log")
    for line in requests(front, both.key):
        assert (line["model"], line["path"], line["status"]) == (MODEL, both.program.path, 200)
        assert line["counted"], "a stream that ended well has told its usage"
    tokens = [line["prompt_tokens"] for line in requests(front, both.key)]
    print(f"{both.program.name}: {tokens} tokens of prompt, {both.right.seconds:.0f} s; {both.wrong.seconds:.0f} s")


def test_the_usage_is_in_the_store(both: Both, front: Gateway) -> None:
    def sums() -> list[dict[str, Any]]:
        found: Any = admin(front, "GET", "/admin/usage?by=key,model,path,status")["usage"]
        return [used for used in found if used["group"]["key"] == both.key]

    until(lambda: sum(used["requests"] for used in sums()) == len(requests(front, both.key)), "all are written")
    assert [(used["group"]["model"], used["group"]["status"], used["failed"]) for used in sums()] == [(MODEL, "200", 0)]


def test_a_wrong_key_is_shown_as_such(both: Both) -> None:
    assert "no such key" in both.wrong.said
    assert ANSWER not in both.wrong.said
    assert (both.wrong.code != 0) is both.program.tells_failure, both.wrong.said


def test_nothing_leaves_this_host(both: Both) -> None:
    tried = {line.split()[1].partition(":")[0] for line in both.left}
    assert tried <= {both.program.tries}
