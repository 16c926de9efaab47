"""openai-node's own behaviours through the gateway: node/checks.mjs, run by the Node.js of the development tools."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.gateway.clients.conftest import Way

NODE = Path(sys.executable).with_name("node")
CHECKS = Path(__file__).parent / "node" / "checks.mjs"


def test_openai_node(way: Way) -> None:
    done = subprocess.run(
        [NODE, "--test", "--test-reporter=tap", CHECKS], capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "TRIMTAB_URL": way.url, "TRIMTAB_KEY": way.key},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"^# pass (\d+)$", done.stdout, re.MULTILINE)
    assert passed
    assert int(passed[1]) == len(re.findall(r"^test\(|^  test\(`", CHECKS.read_text(), re.MULTILINE)) + 3  # 4 errors
    for case in ("silent openai-node", "stuck openai-node"):
        way.server.wait_lost(case)
    assert way.server.times["twice openai-node"] == 2
