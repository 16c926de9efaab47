"""benchmarks/gateway/faults.py in small: mixed requests with faults, each answered once, and usage that adds up."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gateway" / "faults.py"


def test_every_request_is_answered_once_and_the_usage_adds_up() -> None:
    command = [sys.executable, SCRIPT, "--requests", "3000", "--connections", "24", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["faults"] == 0
    assert sum(sum(words.values()) for words in report["outcomes"].values()) == 3000
    assert {"cut", "left", "429", "502"} <= {word for words in report["outcomes"].values() for word in words}
