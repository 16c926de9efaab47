"""Planted secrets show in no log, error, metric, store file or file of the gateway, whatever goes wrong."""

import json
import signal
from pathlib import Path

from tests.gateway.fake_back_end import back_end
from tests.gateway.process import ADMIN, KEY, gateway, until

PROVIDER, IN_FILE, OF_ENGINE = "sk-planted-provider-3f8a", "sk-planted-file-91cc", "sk-planted-engine-77de"
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
CONFIG = """
local: true
access_log: {home}/access.jsonl
back_ends:
  b: {{url: "{url}", key: {{env: PLANTED}}}}
  f: {{url: "http://127.0.0.1:9", key: {{file: {home}/provider.key}}}}
models:
  m: {{targets: [{{back_end: b}}]}}
  dead: {{targets: [{{back_end: f}}]}}
"""


def test_planted_secrets_stay_where_they_are(tmp_path: Path) -> None:
    key_file, said = tmp_path / "provider.key", bytearray()
    key_file.write_text(IN_FILE)
    with back_end() as behind:
        config = CONFIG.format(home=tmp_path, url=behind.url)
        with gateway(tmp_path, config, "--workers", "2", environ={"PLANTED": PROVIDER}) as running:
            as_admin = {"Authorization": f"Bearer {ADMIN}"}
            status, _, answer = running.ask("POST", "/admin/keys", {"label": "ann"}, as_admin)
            made = json.loads(answer)["text"]
            assert status == 201
            asked = [
                ("POST", "/v1/chat/completions", CHAT, {"Authorization": f"Bearer {made}"}),
                ("POST", "/v1/chat/completions", CHAT, {"Authorization": f"Bearer '{KEY}'"}),
                ("POST", "/v1/chat/completions", CHAT, {"Authorization": f"Bearer {ADMIN}"}),
                ("POST", "/v1/chat/completions", {**CHAT, "model": "dead"}, {}),
                ("POST", "/v1/messages", CHAT, {"x-api-key": made[:-1]}),
                ("GET", "/admin/keys", None, as_admin),
                ("GET", "/admin/back-ends", None, as_admin),
                ("GET", "/admin/usage?by=key", None, as_admin),
                ("GET", f"/admin/keys/{made}", None, as_admin),
                ("POST", "/admin/reload", None, as_admin),
                ("GET", "/v1/models", None, {}),
                ("GET", "/readyz", None, {}),
                ("GET", "/metrics", None, {}),
            ]
            for method, path, body, headers in asked:
                _, given, answer = running.ask(method, path, body, headers)
                said += repr(given).encode() + answer
            until(lambda: running.ask("POST", "/v1/chat/completions", CHAT, asked[0][3])[0] == 200, "the key works")
            key_file.unlink()  # the next reload fails, and says so
            running.child.send_signal(signal.SIGHUP)
            running.said("not reloaded")
        assert behind.seen[0][1]["authorization"] == f"Bearer {PROVIDER}"
    kept = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {"store.db", "access.jsonl", "gateway.log"} <= {file.name for file in kept}
    for secret in (KEY, ADMIN, PROVIDER, IN_FILE, made):
        assert secret.encode() not in said, secret
        for file in kept:
            assert secret.encode() not in file.read_bytes(), f"{secret} in {file.name}"
