"""`trimtab top` of the real engine: nothing that the screen shows is missing in its counters."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_up import environment
from tests.conftest import DemoServer


@pytest.mark.vllm
def test_the_real_engine_tells_everything(demo_server: DemoServer, home: Path) -> None:
    words = [sys.executable, "-m", "trimtab", "top", demo_server.base_url, "--once", "--json", "--every", "0.5"]
    done = subprocess.run(words, env=environment(home), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    frame = json.loads(done.stdout)
    assert frame["missing"] == []
    assert frame["reading"]["kind"] == "idle"
    assert frame["kv_tokens"] > 0
    for told in (
        "running",
        "waiting",
        "kv_usage",
        "tokens_s",
        "prompt_tokens_s",
        "preemptions",
        "preemptions_in_window",
    ):
        assert frame[told] == 0
