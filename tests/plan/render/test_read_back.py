"""Every form is read back by our own reader to the same command: model, flags in their order, variables."""

from __future__ import annotations

import pytest

from tests.plan.render.plans import PLANS
from trimtab.engine.command import LaunchCommand, read_commands
from trimtab.plan.planner import Plan
from trimtab.plan.render.forms import render
from trimtab.plan.render.launch import launch_of

FILES = {"sh": "run.sh", "docker": "run.sh"}


def read_back(form: str, text: str) -> LaunchCommand:
    reading = read_commands(text, FILES[form])
    assert reading.problems == ()
    (command,) = reading.commands
    return command


def environment(command: LaunchCommand) -> dict[str, str]:
    """What the launch itself sets; variables handed on from outside are nobody's plan."""
    return {name: use.value for name, use in command.env.items() if use.value is not None}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("form", FILES)
def test_same_command_and_variables(form: str, plan: Plan) -> None:
    text = render(form, launch_of(plan))
    command = read_back(form, text)
    assert command.argv() == plan.command.argv()
    assert environment(command) == plan.env
    assert not any(flag.unknown for flag in command.flags)
    assert text.endswith("\n")


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_config_has_the_flags_and_names_the_variables(plan: Plan) -> None:
    text = render("config", launch_of(plan))
    reading = read_commands(text, "vllm.yaml")
    assert reading.problems == ()
    (command,) = reading.commands
    assert command.argv() == plan.command.argv()
    assert all(f"{name}={value}" in text for name, value in plan.env.items())
