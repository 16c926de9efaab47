"""Run a client program in a home and a project of its own, off the network, and end whatever it leaves behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

import psutil

from tests.clients.programs import Program

RUN_S = 150


@dataclass(frozen=True)
class Ran:
    """How a run ended; `said` is stdout and stderr together, as they came."""

    code: int
    said: str
    seconds: float


class Run:
    """A program that was set up with the right key and started with `key`; `proxy` is where it would leave the host."""

    def __init__(self, program: Program, installed: Path, home: Path, values: Mapping[str, str], proxy: str) -> None:
        def filled(text: str) -> str:
            return Template(text).substitute(values)

        self.home, self.began = home, time.monotonic()
        project = home / "project"
        project.mkdir(parents=True)
        for name, text in program.files.items():
            file = home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(filled(text))
        own = {name: filled(value) for name, value in program.environ.items()}
        first, *words = (filled(word) for word in program.argv)
        environ = _environ(home, values["key"], proxy)
        if program.connects:
            connect = [sys.executable, "-m", "trimtab", "connect", program.name, "--write"]
            connect += ["--url", values["url"], "--model", values["model"]]
            known = {**environ, "TRIMTAB_API_KEY": values["right"]}
            subprocess.run(connect, cwd=project, env=known, check=True, timeout=RUN_S)
        self.output = home / "output"
        with self.output.open("wb") as out:
            self.child = subprocess.Popen(
                [installed / first, *words], cwd=project, env={**environ, **own},
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def end(self) -> Ran:
        """Wait for it; then nothing that has its home runs on."""
        try:
            code = self.child.wait(RUN_S)
            return Ran(code, self.output.read_text(errors="replace"), time.monotonic() - self.began)
        finally:
            left = [process for process in psutil.process_iter() if _home(process) == str(self.home)]
            for process in left:
                process.kill()
            psutil.wait_procs(left, 20)
            self.child.wait(20)


def _home(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("HOME")
    except psutil.Error:
        return None


def _environ(home: Path, key: str, proxy: str) -> dict[str, str]:
    node = Path(sys.executable).parent  # where the tests' own node is
    return {
        "HOME": str(home), "PATH": f"{node}:{os.environ['PATH']}", "TRIMTAB_API_KEY": key,
        "LANG": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1", "CI": "1",
        "DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1",
        "HTTPS_PROXY": proxy, "HTTP_PROXY": proxy, "https_proxy": proxy, "http_proxy": proxy,
        "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1",
    }  # fmt: skip
