"""The stable Python API: its names, what each function gives and raises, and that nothing loads before it is used."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import trimtab
from tests.fakes.openai_server import Knobs, serving

ROOT = Path(__file__).parents[1]
MODEL = "Qwen/Qwen2.5-7B-Instruct"
STABLE = {
    "plan": ("model gpu context concurrency input_tokens output_tokens prefer flags vllm model_config look_up", "Plan"),
    "budget": ("command gpu vllm model_config look_up", "Budget"),
    "lint": ("command gpu vllm model_config host_gib select ignore", "Linted"),
    "diagnose": ("log exit_status vllm gpu", "Diagnosis"),
    "verify": ("url key model depth only context concurrency log first_token_s budget_s", "Verification"),
}


def test_the_page_names_the_stable_names_and_no_others() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    table = page.partition("| name | is |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == sorted(trimtab.__all__) == dir(trimtab)


@pytest.mark.parametrize("name", STABLE)
def test_parameters_and_results_stay(name: str) -> None:
    function = getattr(trimtab, name)
    parameters, result = STABLE[name]
    signature = inspect.signature(function)
    assert list(signature.parameters) == parameters.split()
    assert signature.return_annotation == result
    assert all(p.kind is p.KEYWORD_ONLY for p in list(signature.parameters.values())[1:])
    described = inspect.getdoc(function) or ""
    assert "UsageError" in described
    assert all(re.search(rf"\b{parameter}\b", described) for parameter in parameters.split()), name


def test_results_have_what_the_page_says() -> None:
    for name in ("Plan", "Budget", "Linted", "Diagnosis", "Verification"):
        row = re.search(rf"^\| `{name}` \| (.+) \|$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
        assert row
        for field in re.findall(r"`(\w+)", row[1]):
            assert hasattr(getattr(trimtab, name), field), f"{name}.{field}"


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = trimtab.nothing  # type: ignore[attr-defined]


def test_importing_loads_nothing_and_lint_no_calculation() -> None:
    code = (
        "import sys, trimtab\n"
        "assert not [m for m in sys.modules if m.startswith('trimtab.')]\n"
        f"trimtab.lint('vllm serve {MODEL}')\n"
        "print(*sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    heavy = {"typer", "asyncio", "httpx2", "huggingface_hub", "ruamel.yaml", "rich", "ssl", "trimtab.plan.memory"}
    assert not loaded & heavy


def test_the_function_plan_outlives_the_import_of_its_room() -> None:
    from trimtab.plan.planner import Plan

    assert callable(trimtab.plan)
    made = trimtab.plan(MODEL, gpu="2xA10", context=16384, concurrency=8)
    assert isinstance(made, Plan)
    assert trimtab.Plan is Plan


def test_a_plan_is_what_the_verb_plans() -> None:
    made = trimtab.plan(MODEL, gpu="2xA10", context=16384, concurrency=8, vllm="0.26", flags=["--dtype", "half"])
    words = ["plan", MODEL, "--gpu", "2xA10", "--context", "16384", "--concurrency", "8", "--vllm", "0.26", "--json"]
    command = [sys.executable, "-m", "trimtab", *words, "--", "--dtype", "half"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert made.fits
    assert made.command.argv() == json.loads(done.stdout)["command"]


def test_what_fits_nothing_is_a_plan() -> None:
    made = trimtab.plan("Qwen/Qwen2.5-72B-Instruct", gpu="A10")
    assert not made.fits
    assert made.reasons


def test_a_budget_of_words_a_text_and_a_file(tmp_path: Path) -> None:
    words = ["vllm", "serve", MODEL, "--max-model-len", "4096"]
    script = tmp_path / "serve.sh"
    script.write_text(" ".join(words) + "\n")
    found = [trimtab.budget(given, gpu="A10", vllm="0.26") for given in (words, " ".join(words), script)]
    assert {one.verdict for one in found} == {"fits"}
    assert len({one.tightest.kv_cache.value for one in found}) == 1


@pytest.mark.parametrize("text", ["ls -l", f"vllm serve {MODEL}\nvllm serve {MODEL}"])
def test_a_budget_needs_one_launch(text: str) -> None:
    with pytest.raises(trimtab.UsageError, match=r"[02] launch commands"):
        trimtab.budget(text, gpu="A10")


def test_findings_of_a_file_carry_place_and_code(tmp_path: Path) -> None:
    script = tmp_path / "serve.sh"
    script.write_text(f"vllm serve {MODEL} \\\n  --swap-space 4\n")
    found = trimtab.lint(script, vllm="0.26").report.findings
    assert [(f.rule.code, f.line, f.column, f.file) for f in found] == [("CMD002", 2, 3, "serve.sh")]
    assert trimtab.lint(script, vllm="0.26", ignore=["CMD0"]).report.findings == ()


def test_a_rule_that_is_none_and_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(trimtab.UsageError, match="no rule is called CMD9999"):
        trimtab.lint("vllm serve x/y", select=["CMD9999"])
    with pytest.raises(trimtab.HostError, match="cannot read"):
        trimtab.lint(tmp_path / "none.sh")


def test_a_log_as_text_and_as_file_has_one_cause(tmp_path: Path) -> None:
    log = ROOT / "tests" / "engine" / "logs" / "h200-0.26-q72-oom.log"
    found = [trimtab.diagnose(given) for given in (log, log.read_text())]
    names = {one.cause.rule.name for one in found if one.cause}
    assert len(names) == 1
    with pytest.raises(trimtab.HostError, match="cannot read the log"):
        trimtab.diagnose(tmp_path / "none.log")


def test_a_server_is_judged_also_where_a_loop_runs() -> None:
    async def within() -> trimtab.Verification:
        return trimtab.verify(fake.base_url, key="sk-1", only=["one_request"])

    with serving(Knobs(key="sk-1")) as fake:
        plain = trimtab.verify(fake.base_url, key="sk-1", only=["one_request"])
        inside = asyncio.run(within())
    assert [c.name for c in plain.criteria] == ["one_request"]
    assert plain.passed is inside.passed is True


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(trimtab.UpstreamError):
        trimtab.verify("http://127.0.0.1:9", only=["one_request"])


def test_the_example_runs_and_says_what_it_claims() -> None:
    script = str(ROOT / "docs" / "examples" / "api.py")
    with serving(Knobs(key="sk-1")) as fake:
        command = [sys.executable, script, fake.base_url, "sk-1"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for said in ("--tensor-parallel-size 2", "oom_weights", "CMD002", "no-memory-left-for-kv-cache",
                 "one_request passed", "Did you mean A10"):  # fmt: skip
        assert said in done.stdout
