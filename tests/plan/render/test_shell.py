"""Shell forms: shellcheck finds nothing, and what the shell hands to the program is the plan's command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plan.render.plans import PLANS, TWO_MACHINES
from trimtab.plan.planner import Plan
from trimtab.plan.render.forms import render
from trimtab.plan.render.launch import launch_of

TOLD = """#!{python}
import json, os, sys
print(json.dumps([sys.argv[1:], {{n: v for n, v in os.environ.items() if n.startswith("VLLM_")}}]))
"""


def shellcheck(text: str, tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text(text, encoding="utf-8")
    tool = Path(sys.executable).parent / "shellcheck"
    done = subprocess.run([tool, "--severity=style", file], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def run(text: str, program: str, tmp_path: Path) -> tuple[list[str], dict[str, str]]:
    """The words and variables that `program` gets when a real shell runs the text."""
    stand_in = tmp_path / program
    stand_in.write_text(TOLD.format(python=sys.executable))
    stand_in.chmod(0o755)
    kept = {n: v for n, v in os.environ.items() if not n.startswith("VLLM_")}
    done = subprocess.run(
        ["sh", "-c", text], env={**kept, "PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, check=True
    )
    words, env = json.loads(done.stdout)
    return words, env


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("form", ["sh", "docker"])
def test_shellcheck_finds_nothing(form: str, plan: Plan, tmp_path: Path) -> None:
    shellcheck(render(form, launch_of(plan)), tmp_path)


@pytest.mark.parametrize("form", ["mp", "ray"])
def test_shellcheck_finds_nothing_over_two_machines(form: str, tmp_path: Path) -> None:
    shellcheck(render(form, launch_of(TWO_MACHINES)), tmp_path)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_real_shell_starts_the_planned_command(plan: Plan, tmp_path: Path) -> None:
    words, env = run(render("sh", launch_of(plan)), "vllm", tmp_path)
    assert ["vllm", *words] == plan.command.argv()
    assert env == plan.env


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_docker_gets_the_planned_arguments(plan: Plan, tmp_path: Path) -> None:
    launch = launch_of(plan)
    words, _ = run(render("docker", launch), "docker", tmp_path)
    image = next(i for i, word in enumerate(words) if word.startswith("vllm/vllm-openai"))
    rest = words[image + 1 :]
    assert rest[rest[0] == "--model" :] == launch.arguments
    assert (rest[0] == "--model") == (launch.vendor == "nvidia" and launch.version < (0, 12))
    assert "mount" not in plan.command.argv()
    if launch.is_path:
        fields = next(word for word in words if word.startswith("type=bind"))
        assert launch.model.replace('"', '""') in fields


def test_the_article_s_form() -> None:
    text = render("sh", launch_of(PLANS["four-cards"]))
    top, _, command = text.partition("exec vllm serve")
    assert "set -eu" in top
    for name in ("MODEL_PATH=/models/Qwen2.5-72B", "SERVED_NAME=qwen", "TP_SIZE=4", "GPU_UTIL=", "MAX_LEN=8192"):
        assert f"\n{name}" in top
    assert text.count("vllm serve") == 1
    assert '--tensor-parallel-size "$TP_SIZE"' in command
