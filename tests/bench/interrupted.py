"""A `trimtab` of its own that Ctrl-C ends in the midst of its work."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

from tests.fakes.openai_server import FakeServer


def interrupted(words: list[str], fake: FakeServer, after: int) -> str:
    """What it printed when SIGINT came after so many generations of `fake`; it must end with 130."""
    child = subprocess.Popen([sys.executable, "-m", "trimtab", *words], stdout=subprocess.PIPE, text=True)
    timer = threading.Timer(60, child.kill)
    timer.start()
    try:
        while fake.seen.generations < after:
            assert child.poll() is None
            fake.seen.streaming.wait(0.05)
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate()
    finally:
        timer.cancel()
        child.kill()
    assert child.returncode == 130
    return said
