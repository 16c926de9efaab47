"""Make vLLM's failures again, for real, and write their logs: `scripts/failures --engine DIR --model DIR --out DIR`.

Each case of `cases.py` starts the CPU engine in a process group of its own, lets happen what the case says, ends the
whole group and writes the raw log; `trim.py` makes a fixture of it. Needs root for those that mount or change user.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from case import Case
from cases import CASES
from models import copy
from trim import TRIMMED, trim


class Server:
    """One start of the engine and what may be done to it."""

    def __init__(self, case: Case, options: argparse.Namespace, model: Path) -> None:
        self.case, self.model = case, model
        self.port, self.patience = free_port(), float(options.patience)
        self.log = Path(options.out) / "raw" / f"{case.kind}.log"
        self.engine = Path(options.engine)
        self.process: subprocess.Popen[bytes] | None = None
        self.command: list[str] = []

    def start(self) -> None:
        """Start it, its output going to the log."""
        words = [w.replace("MODEL", str(self.model)).replace("PORT", str(self.port)) for w in self.case.command]
        self.command = [w.replace("MODEL", "/models/demo").replace("PORT", "8000") for w in self.case.command]
        python = str(self.engine / "bin" / "python")
        line = [python, "-m", self.case.module, *words]
        if self.case.shell:
            line = ["unshare", "-m", "sh", "-c", self.case.shell + ' && exec "$@"', "sh", *line]
        environ = {
            "PATH": f"{self.engine / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.model.parent / "home"),
            "LD_PRELOAD": ":".join(map(str, preloaded(self.engine))), "VLLM_CPU_KVCACHE_SPACE": "1", "LANG": "C.UTF-8",
            "VLLM_NO_USAGE_STATS": "1", **self.case.env,
        }  # fmt: skip
        environ = {k: v.replace("MODEL", str(self.model)) for k, v in environ.items() if v != "UNSET"}
        if self.case.nobody:
            line = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *line]
        (self.model.parent / "home").mkdir(exist_ok=True)  # a case may have made it unwritable
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                line, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=environ,
                start_new_session=True, preexec_fn=self.case.before,
            )  # fmt: skip

    def ready(self) -> bool:
        """Wait until it answers on /health, ends, or the case's time is over."""
        end = time.monotonic() + self.case.wait_s * self.patience
        while time.monotonic() < end and self.process and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=5):
                    return True
            except OSError:
                time.sleep(0.5)
        return False

    def told(self, words: str) -> bool:
        """Wait until the log holds `words`; False when the server ends or the case's time is over before."""
        end = time.monotonic() + self.case.wait_s * self.patience
        while time.monotonic() < end and self.process and self.process.poll() is None:
            if words in self.log.read_text(errors="replace"):
                return True
            time.sleep(0.05)
        return False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, body: Any = None, key: str | None = None, timeout: float = 60) -> str:
        """Status and body of one request; an error's too."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        if key:
            request.add_header("Authorization", f"Bearer {key}")
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return f"{answer.status} {answer.read(600).decode(errors='replace')}"
        except urllib.error.HTTPError as error:
            return f"{error.code} {error.read(600).decode(errors='replace')}"
        except OSError as error:
            return f"{type(error).__name__}: {error}"

    def pids(self, name: str = "") -> list[int]:
        """Processes of this start (they keep its session) whose title holds `name`."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or not self.process:
                continue
            try:
                session = int((entry / "stat").read_text().rpartition(")")[2].split()[3])
                title = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if session == self.process.pid and name in title:
                found.append(int(entry.name))
        return sorted(found)

    def signal(self, name: str, number: int) -> None:
        """Send a signal to each process whose title holds `name`."""
        for pid in self.pids(name):
            os.kill(pid, number)

    def wait(self, seconds: float) -> None:
        """Until the main process ends, at most so long."""
        try:
            if self.process:
                self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass

    def end(self) -> int | None:
        """The exit status it had by itself, or None; then nothing of it is left."""
        status = self.process.poll() if self.process else None
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if self.process:
            self.process.wait()
        return status


def preloaded(engine: Path) -> list[Path]:
    """What the engine brings to be loaded first: Intel's OpenMP, and tcmalloc where it was laid beside it, without
    which vLLM 0.18 does not start."""
    return [engine / "lib" / "libiomp5.so", *sorted((engine / "lib").glob("libtcmalloc*.so*"))]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def make(case: Case, options: argparse.Namespace) -> dict[str, Any]:
    """Run one case; the row of the index."""
    work = Path(options.work)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    work.chmod(0o755)
    model = copy(Path(options.model), work / "demo")
    case.prepare(model)
    server = Server(case, options, model)
    answers: list[str] = []
    try:
        server.start()
        if case.starting:
            case.starting(server)
        if case.during:
            answers = case.during(server) if server.ready() else ["not ready"]
            server.wait(case.settle_s)
        elif server.ready():
            answers = ["ready"]
    finally:
        status = server.end()
    log = server.log.read_text(errors="replace")
    names = {
        str(model): "/models/demo", str(work): "/srv", str(Path(options.engine).resolve()): "/opt/vllm",
        str(options.engine): "/opt/vllm", str(Path(options.model).resolve()): "/models/demo",
        str(server.port): "8000", socket.gethostname() + " ": "host ",
    }  # fmt: skip
    names |= {address: "192.0.2.2" for address in own_addresses(log)}
    (Path(options.out) / f"{case.kind}.log").write_text(trim(log, names))
    healthy = case.healthy or answers == ["ready"]
    environ = [f"{k}={v}" for k, v in case.env.items() if v != "UNSET"]
    return {
        "kind": case.kind, "version": options.version, "command": " ".join([*environ, *_started(case, server)]),
        "happened": case.happened, "cause": "" if healthy else case.cause, "healthy": healthy,
        "answer_cause": case.answered, "exit_status": status,
        "answers": [trim(a, names).strip() for a in answers], "trimmed": TRIMMED,
    }  # fmt: skip


def _started(case: Case, server: Server) -> list[str]:
    words = server.command
    return ["vllm", *words] if case.module == "vllm.entrypoints.cli.main" else ["python", "-m", case.module, *words]


def own_addresses(log: str) -> set[str]:
    """Addresses of this machine that the log names."""
    return {a for a in re.findall(r"\b(?:\d{1,3}\.){3}\d{1,3}\b", log) if not a.startswith(("127.", "0.", "192.0.2."))}


def main() -> int:
    """Run the cases asked for (all by default) and write logs and index."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--engine", required=True, help="an engine's environment, as `trimtab engine install cpu` makes"
    )
    parser.add_argument("--model", required=True, help="the demo model's directory")
    parser.add_argument("--out", required=True)
    parser.add_argument("--work", default="/var/tmp/trimtab-failures", help="a directory that is emptied")
    parser.add_argument("--lock", help="a file locked while an engine runs")
    parser.add_argument("--version", default="0.32.0")
    parser.add_argument("--patience", default=1.0, type=float, help="how many times longer a start may take")
    parser.add_argument("kinds", nargs="*")
    options = parser.parse_args()
    (Path(options.out) / "raw").mkdir(parents=True, exist_ok=True)
    index = Path(options.out) / "index.jsonl"
    rows = {r["kind"]: r for r in map(json.loads, index.read_text().splitlines())} if index.exists() else {}
    known = {case.kind: case for case in CASES}
    for case in map(known.__getitem__, options.kinds or known):
        with Path(options.lock or os.devnull).open("a") as lock:
            if options.lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
            row = make(case, options)
        rows[case.kind] = row
        print(case.kind, row["exit_status"], row["answers"][:1], file=sys.stderr, flush=True)
        index.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows.values()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
