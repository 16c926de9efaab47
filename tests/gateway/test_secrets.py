"""Keys of clients and providers: used where they belong, and found nowhere that anybody reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.gateway.fake_back_end import BackEnd, back_end
from tests.gateway.process import Gateway, gateway, until

BODY = {"messages": [{"role": "user", "content": "hello"}]}
FROM_VARIABLE, FROM_FILE, FROM_STORE, LATER = (f"planted-{where}-0123456789" for where in ("a", "b", "c", "d"))

CONFIG = """local: false
access_log: {home}/access.log
back_ends:
  variable: {{url: {url}, key: {{env: THEIR_KEY}}}}
  file: {{url: {url}, key: {{file: {home}/their.key}}}}
  store: {{url: {url}, key: {{stored: cloud}}}}
  gone: {{url: "http://127.0.0.1:9", key: {{env: THEIR_KEY}}}}
models:
  of-variable: {{targets: [{{back_end: variable}}]}}
  of-file: {{targets: [{{back_end: file}}]}}
  of-store: {{targets: [{{back_end: store}}]}}
  of-gone: {{targets: [{{back_end: gone}}]}}
"""


def keys(home: Path, *words: str, given: str = "") -> str:
    """`trimtab keys` on the gateway's own store."""
    env = {
        **os.environ,
        **{f"XDG_{name}_HOME": str(home / name.lower()) for name in ("STATE", "DATA", "CONFIG", "CACHE")},
    }
    done = subprocess.run(
        [sys.executable, "-m", "trimtab", "keys", *words],
        input=given,
        capture_output=True,
        text=True,
        check=True,
        env=env,
    )
    return done.stdout.strip()


def ask(running: Gateway, model: str, key: str) -> tuple[int, bytes]:
    body: dict[str, Any] = {"model": model, **BODY}
    status, _, answer = running.ask("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {key}"})
    return status, answer


def listed(running: Gateway, key: str) -> bool:
    return running.ask("GET", "/v1/models", headers={"Authorization": f"Bearer {key}"})[0] == 200


def sent(behind: BackEnd) -> str:
    """The key that the back end was sent last."""
    return behind.seen[-1][1]["authorization"].removeprefix("Bearer ")


def test_planted_secrets_are_used_and_found_nowhere(tmp_path: Path) -> None:
    (tmp_path / "their.key").write_text(FROM_FILE + "\n")
    keys(tmp_path, "provider", "set", "cloud", given=FROM_STORE)
    mine = keys(tmp_path, "create", "--label", "mine")
    seen = b""
    with back_end() as behind:
        config = CONFIG.format(url=behind.url, home=tmp_path)
        with gateway(tmp_path, config, environ={"THEIR_KEY": FROM_VARIABLE}) as running:
            for model, theirs in (("of-variable", FROM_VARIABLE), ("of-file", FROM_FILE), ("of-store", FROM_STORE)):
                assert ask(running, model, mine)[0] == 200
                assert sent(behind) == theirs
            keys(tmp_path, "provider", "set", "cloud", given=LATER)

            def changed() -> bool:
                ask(running, "of-store", mine)
                return sent(behind) == LATER

            until(changed, "the provider's other key", 5)
            for model, key in (("of-gone", mine), ("none", mine), ("of-file", f"'{mine}'"), ("of-file", mine + "x")):
                status, answer = ask(running, model, key)
                assert status >= 400
                seen += answer
            for path in ("/metrics", "/readyz", "/v1/models", "/health"):
                seen += running.ask("GET", path, headers={"Authorization": f"Bearer {mine}"})[2]
            seen += keys(tmp_path, "list", "--all", "--json").encode()
            seen += keys(tmp_path, "show", "mine", "--json").encode()
            seen += keys(tmp_path, "usage", "--by", "key,model,back_end,path,status", "--json").encode()
    seen += (tmp_path / "access.log").read_bytes() + (tmp_path / "gateway.log").read_bytes()
    for file in (tmp_path / "data").rglob("*"):
        seen += file.read_bytes() if file.is_file() else b""
    assert seen.count(b"planted-") == 0
    assert mine[9:].encode() not in seen


def test_a_key_made_and_revoked_beside_a_running_gateway(tmp_path: Path) -> None:
    with back_end() as behind:
        config = (
            CONFIG.format(url=behind.url, home=tmp_path)
            .replace("  store: {", "  unused: {")
            .replace("stored: cloud", "env: THEIR_KEY")
        )
        config = "\n".join(line for line in config.splitlines() if "of-store" not in line)
        (tmp_path / "their.key").write_text(FROM_FILE)
        with gateway(tmp_path, config, "--workers", "2", environ={"THEIR_KEY": FROM_VARIABLE}) as running:
            mine = keys(tmp_path, "create", "--label", "mine", "--limit", "requests_per_minute=10")
            until(lambda: all(listed(running, mine) for _ in range(12)), "the new key, by both workers", 5)
            answers = [ask(running, "of-file", mine) for _ in range(40)]
            assert {status for status, _ in answers} == {200, 429}
            assert answers[-1][0] == 429
            assert b"10 requests a minute" in answers[-1][1]
            keys(tmp_path, "revoke", "mine")
            until(lambda: not any(listed(running, mine) for _ in range(12)), "the revocation, by both workers", 5)
            assert b"was revoked" in ask(running, "of-file", mine)[1]
        [total] = json.loads(keys(tmp_path, "usage", "--by", "key", "--json"))["groups"]
    assert total["requests"] == sum(1 for entry in behind.seen if entry[0].endswith("/chat/completions"))
    assert total["prompt_tokens"] == 7 * total["requests"]
