"""What a command loads before it answers: the reason why it answers at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.contracts.test_imports import SRC, sources

QUICK_ROOMS = ("facts", "engine", "plan", "rules", "messages", "cli")
HEAVY = {
    "asyncio", "email", "http.client", "httpx2", "huggingface_hub", "importlib.metadata", "logging", "markdown_it",
    "multiprocessing", "psutil", "rich", "ruamel.yaml", "ssl", "tomllib", "zipfile",
}  # fmt: skip
MODEL = "Qwen/Qwen2.5-7B-Instruct"
WELL = "tests/engine/logs/cpu-0.32-eager.log"
FAILED = "tests/engine/logs/h200-0.26-q72-oom.log"
COMMANDS = {
    "version": (["--version"], HEAVY | {"msgspec", "re", "typer"}),
    "lint": (["lint", f"vllm serve {MODEL}"], HEAVY | {"trimtab.facts.gpu", "trimtab.plan.memory"}),
    "plan": (["plan", MODEL, "--gpu", "8xA10"], HEAVY | {"tree_sitter", "trimtab.engine.reading.shell"}),
    "budget": (["budget", "--gpu", "8xA10", "--", "vllm", "serve", MODEL], HEAVY | {"trimtab.rules"}),
    "doctor": (
        ["doctor", WELL],
        HEAVY | {"trimtab.facts.model", "trimtab.plan", "trimtab.rules.lint", "trimtab.supervisor.registry"},
    ),
    "doctor with a fix": (
        ["doctor", FAILED],
        HEAVY | {"tree_sitter", "trimtab.supervisor.registry", "trimtab.rules.clients"},
    ),
}
REPORT = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
RUN = REPORT + "from trimtab.__main__ import main; main()"


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_command_loads_only_what_it_needs(verb: str) -> None:
    words, heavy = COMMANDS[verb]
    done = subprocess.run([sys.executable, "-c", RUN, *words], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "sys" in loaded
    assert loaded & heavy == set()


def test_records_are_structs() -> None:
    """A dataclass writes and compiles its methods at every start, 20 times slower than msgspec makes a struct."""
    made = [
        str(file.relative_to(SRC))
        for file in sources()
        if file.relative_to(SRC).parts[0] in QUICK_ROOMS and "@dataclass" in file.read_text(encoding="utf-8")
    ]
    assert made == []
