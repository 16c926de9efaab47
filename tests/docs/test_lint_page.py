"""docs/lint.md tells the truth: its files are written, its commands run in order, and they print what it shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "lint.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def sessions() -> Iterator[tuple[str, str]]:
    """Command and what it prints, of every console block."""
    for language, text in BLOCKS:
        if language == "console":
            for part in text.split("$ ")[1:]:
                command, _, shown = part.partition("\n")
                yield command, shown


def pattern(shown: str) -> str:
    """A line of dots stands for any lines, dots at the end of a line for its rest."""
    lines = [r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + "\n"
             for line in shown.splitlines()]  # fmt: skip
    return "".join(lines) + ("" if shown.endswith("...\n") else r"\Z")


def test_examples_print_what_the_page_shows(tmp_path: Path) -> None:
    for language, text in BLOCKS:
        name = re.match(r"# (\S+\.sh)\n", text)
        if language == "bash" and name:
            (tmp_path / name[1]).write_text(text.partition("\n")[2])
    env = {k: v for k, v in os.environ.items() if not k.startswith("TRIMTAB_")}
    env |= {"PATH": f"{Path(sys.executable).parent}:{env['PATH']}", "LC_ALL": "C.UTF-8"}
    commands = list(sessions())
    assert len(commands) >= 10
    steps = [f"(exit $was)\n{{ {command}\n}} 2>&1\nwas=$?; echo '<end>'\n" for command, _ in commands]
    script = "was=0\n" + "".join(steps)
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    printed = done.stdout.split("<end>\n")
    for (command, shown), output in zip(commands, printed, strict=False):
        assert re.match(pattern(shown), output), f"$ {command}\n{output}\nis not\n{shown}"


def test_yaml_on_the_page_is_yaml() -> None:
    found = [YAML(typ="safe").load(text) for language, text in BLOCKS if language == "yaml"]
    assert len(found) == 3


def test_the_schema_table_names_every_key(tmp_path: Path) -> None:
    command = ["trimtab", "lint", "vllm serve org/model --swap-space 4", "--vllm", "0.26", "--json"]
    command[0] = str(Path(sys.executable).with_name("trimtab"))
    report = json.loads(subprocess.run(command, capture_output=True, check=False).stdout)
    table = PAGE.partition("| key | holds |")[2].partition("\n\n")[0]
    for key in (*report, *report["findings"][0], *report["findings"][0]["fix"], *report["not_judged"][0]):
        assert re.search(rf"`[\w\[\]]*\.?{key}(?:\[\])?`", table), key


@pytest.mark.parametrize(
    "name", ["serve.sh", "compose.yaml", "k8s/vllm.yml", "vllm.service", "Dockerfile.gpu", "docs/a.md"]
)
def test_the_hook_takes_launch_files(name: str) -> None:
    hooks = YAML(typ="safe").load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [h["id"] for h in hooks] == ["trimtab-lint"]
    assert hooks[0]["entry"] == "trimtab lint"
    assert re.search(hooks[0]["files"], name)
    assert not re.search(hooks[0]["files"], "src/main.py")
