"""Ctrl-C before the door is open: while the command's modules load."""

import subprocess
import sys

INTERRUPTED_WHILE_LOADING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
sys.argv = ["trimtab", "plan", "Qwen/Qwen2.5-7B-Instruct"]
from trimtab.__main__ import main
main()
"""


def test_interrupt_while_modules_load() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHILE_LOADING], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "trimtab: interrupted\n")
