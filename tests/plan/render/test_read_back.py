"""Every form is read back by our own reader to the same command: model, flags in their order, variables."""

from __future__ import annotations

import pytest

from tests.plan.render.plans import OLD_AMD, OLD_CPU, PLANS, RELATIVE, TWO_MACHINES
from trimtab.engine.command import LaunchCommand, read_commands
from trimtab.errors import UsageError
from trimtab.facts.gpu import parse_gpus
from trimtab.plan.planner import Plan
from trimtab.plan.render.forms import FORMS, ONE_MACHINE, render
from trimtab.plan.render.launch import launch_of
from trimtab.rules.lint import LintFacts, lint

FILES = {
    "sh": "run.sh", "docker": "run.sh", "compose": "compose.yaml", "systemd": "vllm.service", "k8s": "vllm.yaml",
    "config": "vllm.yaml", "helm-values": "values.yaml", "ray": "run.sh", "mp": "run.sh",
}  # fmt: skip
NODE_FLAGS = ("nnodes", "node-rank", "master-addr", "headless")


def read_back(form: str, text: str) -> tuple[LaunchCommand, ...]:
    reading = read_commands(text, FILES[form])
    assert reading.problems == ()
    return reading.commands


def environment(command: LaunchCommand) -> dict[str, str]:
    """What the launch itself sets; variables handed on from outside are nobody's plan."""
    return {name: use.value for name, use in command.env.items() if use.value is not None and not use.unknown}


def without_node_flags(command: LaunchCommand) -> list[str]:
    for name in NODE_FLAGS:
        command = command.without_flag(name)
    return command.argv()


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("form", ["sh", "docker", "compose", "systemd", "k8s"])
def test_same_command_and_variables(form: str, plan: Plan) -> None:
    if form == "k8s" and ":" in plan.command.argv()[2]:
        with pytest.raises(UsageError, match="takes in no mount path"):
            render(form, launch_of(plan))
        return
    text = render(form, launch_of(plan))
    (command,) = read_back(form, text)
    assert command.argv() == plan.command.argv()
    assert environment(command) == plan.env
    assert not any(flag.unknown for flag in command.flags)
    assert text.endswith("\n")


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_config_has_the_flags_and_names_the_variables(plan: Plan) -> None:
    text = render("config", launch_of(plan))
    (command,) = read_back("config", text)
    assert command.argv() == plan.command.argv()
    assert all(f"{name}={value}" in text for name, value in plan.env.items())


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_helm_values_have_the_flags_and_what_the_chart_would_turn_off(plan: Plan) -> None:
    launch = launch_of(plan)
    if launch.is_path and not launch.model.startswith("/data/"):
        with pytest.raises(UsageError, match="mounts its storage at /data"):
            render("helm-values", launch)
        return
    (command,) = read_back("helm-values", render("helm-values", launch))
    assert command.model is not None
    assert command.model.text == launch.model
    told = {flag.dotted: (flag.value, flag.negated) for flag in command.flags}
    assert told.pop("enable-prefix-caching") == (None, not launch.prefix_caching)
    wanted = {flag.dotted: (flag.value, flag.negated) for flag in launch.flags}
    for name in ("enable-prefix-caching", "port"):  # the chart's containerPort
        wanted.pop(name, None)
    assert told == wanted
    assert environment(command) == plan.env
    assert command.container is not None
    assert command.container.version == str(launch.version)


@pytest.mark.parametrize("form", ["mp", "k8s"])
def test_machines_differ_in_their_place_only(form: str) -> None:
    commands = read_back(form, render(form, launch_of(TWO_MACHINES)))
    assert [without_node_flags(c) for c in commands] == [TWO_MACHINES.command.argv()] * 2
    assert [c.get("nnodes") for c in commands] == ["2", "2"]
    assert [c.has("headless") for c in commands] == [False, True]


def test_ray_is_one_command_on_the_head() -> None:
    (command,) = read_back("ray", render("ray", launch_of(TWO_MACHINES)))
    assert command.get("distributed-executor-backend") == "ray"
    assert command.without_flag("distributed-executor-backend").argv() == TWO_MACHINES.command.argv()


def test_every_form_is_read_back() -> None:
    assert set(FILES) == set(FORMS) - {"client"}


@pytest.mark.parametrize("form", ONE_MACHINE)
def test_forms_of_one_machine_refuse_two(form: str) -> None:
    with pytest.raises(UsageError, match="this launch runs on 2"):
        render(form, launch_of(TWO_MACHINES))


def test_cards_must_spread_evenly() -> None:
    with pytest.raises(UsageError, match="16 cards do not spread evenly over 3 machines"):
        launch_of(TWO_MACHINES, 3)


def test_mp_needs_two_machines_and_the_flags() -> None:
    with pytest.raises(UsageError, match="this launch runs on one"):
        render("mp", launch_of(PLANS["hub-id"]))
    with pytest.raises(UsageError, match=r"vLLM 0\.9\.2 has no --nnodes"):
        render("mp", launch_of(PLANS["v100"], 2))


def test_what_starts_elsewhere_needs_an_absolute_path() -> None:
    for form in ("docker", "compose", "systemd", "k8s"):
        with pytest.raises(UsageError, match="needs an absolute path"):
            render(form, launch_of(RELATIVE))


@pytest.mark.parametrize("plan", [OLD_AMD, OLD_CPU])
def test_releases_without_an_image_of_their_own(plan: Plan) -> None:
    for form in ("docker", "compose", "k8s"):
        with pytest.raises(UsageError, match="has no published image for"):
            render(form, launch_of(plan))
    assert "vllm serve" in render("systemd", launch_of(plan))


@pytest.mark.parametrize("form", FILES)
def test_the_linter_finds_nothing(form: str) -> None:
    plan = TWO_MACHINES if form in ("mp", "ray") else PLANS["hub-id"]
    cards = "16xA10" if form in ("mp", "ray") else "A100-80"
    facts = LintFacts(gpus=parse_gpus(cards), model_of=lambda _: plan.budget.model)
    report = lint(render(form, launch_of(plan)), filename=FILES[form], facts=facts).report
    assert report.findings == ()
