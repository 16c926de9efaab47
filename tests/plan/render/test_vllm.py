"""vLLM's own parser takes what the forms hold, and understands the planned command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DemoServer
from tests.plan.render.plans import PLANS, TINY, TWO_MACHINES, planned
from tests.plan.render.test_client import files
from tests.plan.render.test_shell import run
from trimtab.plan.render.forms import render
from trimtab.plan.render.launch import launch_of
from trimtab.supervisor.environments import Engine

PARSE = """
import json, sys
from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
from vllm.utils.argparse_utils import FlexibleArgumentParser
top = FlexibleArgumentParser(prog="vllm")
make_arg_parser(top.add_subparsers(dest="subparser").add_parser("serve"))
found = {}
for name, words in json.load(sys.stdin).items():
    args = top.parse_args(words)
    validate_parsed_serve_args(args)
    found[name] = {k: repr(v) for k, v in vars(args).items()}
print("PARSED", json.dumps(found))
"""
PLACE = ("nnodes", "node_rank", "master_addr", "headless")


def parsed(engine: Engine, commands: dict[str, list[str]]) -> dict[str, dict[str, str]]:
    """Command -> what vLLM's parser makes of it, by argument."""
    quiet = {"VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
    done = subprocess.run(
        [engine.python, "-c", PARSE], input=json.dumps(commands), env={**os.environ, **engine.env, **quiet},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    told = [line for line in done.stdout.splitlines() if line.startswith("PARSED ")]
    assert told, done.stderr[-3000:]
    found: dict[str, dict[str, str]] = json.loads(told[0].removeprefix("PARSED "))
    return found


@pytest.mark.vllm
def test_vllm_s_parser_reads_every_form_as_the_plan(cpu_engine: Engine, tmp_path: Path) -> None:
    commands: dict[str, list[str]] = {}
    for name, plan in PLANS.items():
        launch = launch_of(plan)
        file = tmp_path / f"{name}.yaml"
        file.write_text(render("config", launch), encoding="utf-8")
        commands[f"plan {name}"] = plan.command.argv()[1:]
        commands[f"sh {name}"] = run(render("sh", launch), "vllm", tmp_path)[0]
        commands[f"config {name}"] = ["serve", "--config", str(file)]
    commands["plan of two"] = TWO_MACHINES.command.argv()[1:]
    launch = launch_of(TWO_MACHINES)
    for rank in ("0", "1"):
        commands[f"mp {rank}"] = on_machine(render("mp", launch), rank, "10.0.0.1", tmp_path)
    commands["ray"] = on_machine(render("ray", launch), "10.0.0.1", "", tmp_path)

    found = parsed(cpu_engine, commands)
    for name in (n.removeprefix("config ") for n in commands if n.startswith("config ")):
        plan_says = without(found[f"plan {name}"], "config", "model_tag", "model")
        for form in ("sh", "config"):
            assert without(found[f"{form} {name}"], "config", "model_tag", "model") == plan_says, (form, name)
            told = {found[f"{form} {name}"][key] for key in ("model_tag", "model")}
            assert repr(PLANS[name].command.argv()[2]) in told
    for rank in ("0", "1"):
        told = found[f"mp {rank}"]
        assert [told[key] for key in PLACE] == ["2", rank, "'10.0.0.1'", str(rank == "1")]
        assert without(told, *PLACE) == without(found["plan of two"], *PLACE)
    assert found["ray"]["distributed_executor_backend"] == "'ray'"
    backend = "distributed_executor_backend"
    assert without(found["ray"], backend) == without(found["plan of two"], backend)


@pytest.mark.vllm
def test_the_client_s_files_get_an_answer_of_the_real_server(demo_server: DemoServer, tmp_path: Path) -> None:
    port = int(demo_server.base_url.removesuffix("/v1").rpartition(":")[2])
    plan = planned(TINY, "cpu", "/models/m", demo_server.model, "0.32", host="127.0.0.1", port=port)
    found = files(render("client", launch_of(plan)))
    for file in ("client.json", ".env"):
        (tmp_path / file).write_text(found[file], encoding="utf-8")
    for command in (["sh", "-c", found["curl"]], [sys.executable, "-c", found["openai-python"]]):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()


def on_machine(text: str, first: str, second: str, tmp_path: Path) -> list[str]:
    """The words that vLLM gets when a shell runs the script with these arguments."""
    (tmp_path / "ray").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "ray").chmod(0o755)
    return run(f"set -- '{first}' {second}\n{text}", "vllm", tmp_path)[0]


def without(values: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in names}
