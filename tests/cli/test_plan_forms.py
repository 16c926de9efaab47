"""`trimtab plan -o FORM` as a command: what goes to stdout, what to stderr, and what reads it back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from trimtab.cli.main import run
from trimtab.cli.subject import command_of, resolve_subject
from trimtab.plan.render.forms import FORMS, ONE_MACHINE

MODEL = ("Qwen/Qwen2.5-7B-Instruct", "--gpu", "A10", "--context", "8192")
LARGE = ("Qwen/Qwen2.5-72B-Instruct", "--gpu", "16xA10", "--context", "8192")
SPLIT = ("--", "--tensor-parallel-size", "8", "--pipeline-parallel-size", "2")
PLAN_KEYS = {
    "alternatives",
    "budget",
    "command",
    "considered",
    "env",
    "estimate",
    "findings",
    "fits",
    "given_up",
    "reasons",
    "headroom",
    "schema",
    "verdict",
    "why",
}


def trimtab(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "trimtab", *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("form", sorted({*FORMS, "json", "plan"} - {"mp"}))
def test_each_form_is_written_to_stdout(form: str) -> None:
    done = trimtab("plan", *MODEL, "-o", form)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Qwen/Qwen2.5-7B-Instruct" in done.stdout or form == "client"
    assert "Qwen2.5-7B-Instruct" in done.stdout


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_without_gpu_the_plan_is_for_this_host(words: tuple[str, ...]) -> None:
    """Its cards where it has some, else the CPU engine."""
    done = trimtab("plan", "Qwen/Qwen2.5-0.5B-Instruct", "--context", "2048", "--concurrency", "1", *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert "serve" in done.stdout


def test_help_names_every_form() -> None:
    text = trimtab("plan", "--help").stdout
    assert all(form in text for form in (*FORMS, "json", "plan"))


def test_an_unknown_form_names_the_nearest() -> None:
    done = trimtab("plan", *MODEL, "-o", "helm")
    assert done.returncode == 2
    assert "not 'helm'" in done.stderr
    assert "helm-values" in done.stderr.splitlines()[-1]


def test_the_plan_file_is_read_back_by_up_lint_and_budget(tmp_path: Path) -> None:
    done = trimtab("plan", *MODEL, "-o", "plan")
    assert done.stdout == trimtab("plan", *MODEL, "--json").stdout == trimtab("plan", *MODEL, "-o", "json").stdout
    value = json.loads(done.stdout)
    assert set(value) == PLAN_KEYS
    assert value["findings"] == []
    file = tmp_path / "plan.json"
    file.write_text(done.stdout)
    assert command_of(resolve_subject(str(file), None)).argv() == value["command"]
    assert trimtab("lint", str(file), "--gpu", "A10").returncode == 0
    budget = json.loads(trimtab("budget", str(file), "--gpu", "A10", "--json").stdout)
    assert budget["verdict"] == value["verdict"] == "fits"


def test_the_linter_reads_a_plan_with_its_variables(tmp_path: Path) -> None:
    plan = {"schema": "trimtab.plan/1", "command": ["vllm", "serve", "m"], "env": {"VLLM_ATTENTION_BAKEND": "x"}}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan))
    assert "VLLM_ATTENTION_BAKEND" in trimtab("lint", str(file)).stdout


def test_findings_on_the_plan_s_own_command_are_told() -> None:
    pinned = ("--", "--disable-custom-all-reduce", "--kv-cache-dtype", "fp8_e5m2", "--swap-space", "4")
    value = json.loads(trimtab("plan", *MODEL, "--json", *pinned).stdout)
    assert "--swap-space" in {word for finding in value["findings"] for word in finding["message"].split()}


def test_what_does_not_fit_is_no_form_to_deploy() -> None:
    words = ("plan", "Qwen/Qwen2.5-72B-Instruct", "--gpu", "A10", "--context", "8192", "-o")
    done = trimtab(*words, "sh")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Does not fit" in done.stderr
    assert json.loads(trimtab(*words, "json").stdout)["fits"] is False


@pytest.mark.parametrize("form", ["mp", "ray", "k8s"])
def test_sixteen_cards_are_two_machines(form: str) -> None:
    done = trimtab("plan", *LARGE, "-o", form, *SPLIT)
    assert done.returncode == 0
    assert "16 cards are taken as 2 machines of 8" in done.stderr
    assert trimtab("plan", *LARGE, "-o", form, "--nodes", "2", *SPLIT).stderr == ""


@pytest.mark.parametrize("form", ONE_MACHINE)
def test_one_machine_s_forms_refuse_them(form: str) -> None:
    done = trimtab("plan", *LARGE, "-o", form, "--nodes", "4", *SPLIT)
    assert (done.returncode, done.stdout) == (2, "")
    assert "this launch runs on 4" in done.stderr


@pytest.mark.parametrize("nodes", ["3", "5"])
def test_machines_that_cannot_be(nodes: str) -> None:
    done = trimtab("plan", *LARGE, "-o", "mp", "--nodes", nodes, *SPLIT)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"16 cards do not spread evenly over {nodes} machines" in done.stderr


@pytest.mark.parametrize(
    ("gpu", "model"),
    [("V100-32", "Qwen/Qwen2.5-7B-Instruct"), ("2x24GiB", "Qwen/Qwen3-14B"), ("cpu", "Qwen/Qwen3-0.6B")],
)
def test_a_plan_file_is_judged_on_the_vllm_and_the_cards_it_was_made_for(
    gpu: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plan.json"
    assert run(["plan", model, "--gpu", gpu, "--context", "4096", "-o", "plan"]) == 0
    file.write_text(capsys.readouterr().out)
    planned = json.loads(file.read_text())["budget"]
    assert run(["budget", str(file), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["vllm"], again["gpu"], again["kv_cache_tokens"]) == (
        planned["vllm"], planned["gpu"], planned["kv_cache_tokens"],
    )  # fmt: skip
    assert run(["lint", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["vllm"] == planned["vllm"]
