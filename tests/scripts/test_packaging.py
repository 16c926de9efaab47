"""What a release holds: the wheel works where no sources are; manual, completion, action and chart fit the verbs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from ruamel.yaml import YAML

import trimtab
from trimtab.cli.main import VERBS

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def run(*words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, env=os.environ | more, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    done = run(sys.executable, "-m", "hatchling", "build", "-d", str(out))
    assert done.returncode == 0, done.stderr
    assert [p.name for p in out.glob("*.tar.gz")] == [f"trimtab-{trimtab.__version__}.tar.gz"]
    return next(out.glob("*.whl"))


def test_the_wheel_holds_the_package_and_the_licence_alone(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"trimtab", f"trimtab-{trimtab.__version__}.dist-info"}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    sources = {
        str(p.relative_to(ROOT / "src")) for p in (ROOT / "src").rglob("*") if p.suffix != ".pyc" and p.is_file()
    }
    assert sources <= set(names)


def test_the_wheel_runs_without_the_sources(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = "import trimtab; from trimtab.__main__ import main; print(trimtab.__file__); main()"
    for words, code_out, said in (
        (["--version"], 0, f"trimtab {trimtab.__version__}"),
        (["plan", "Qwen/Qwen2.5-7B-Instruct", "--gpu", "A10"], 0, "--max-model-len"),
        (["lint", "--vllm", "0.26", "vllm serve m --swap-space 4"], 1, "CMD002"),
    ):
        done = run(sys.executable, "-P", "-c", code, *words, PYTHONPATH=str(tmp_path))
        assert done.returncode == code_out, done.stderr
        assert done.stdout.startswith(str(tmp_path))
        assert said in done.stdout


def test_the_manual_names_every_verb_and_option() -> None:
    done = run(sys.executable, ROOT / "scripts" / "man")
    assert done.returncode == 0, done.stderr
    page = done.stdout.replace("\\-", "-")
    assert all(f".SS trimtab {verb}\n" in page for verb in VERBS)
    declared = (ROOT / "src/trimtab/cli/options.py").read_text()
    named = re.findall(r'typer\.Option\(\s*"(--[\w-]+)', declared)
    assert len(named) > 50
    assert [option for option in named if option not in page] == []
    assert not [line for line in done.stdout.splitlines() if re.match(r"[.'](?!TH|SH|SS|TP|B )", line)]


@pytest.mark.parametrize(
    ("shell", "asked"),
    [
        ("bash", {"COMP_WORDS": "trimtab plan --con", "COMP_CWORD": "2"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "trimtab plan --con"}),
        ("fish", {"_TYPER_COMPLETE_ARGS": "trimtab plan --con", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)
def test_shells_complete_options(shell: str, asked: dict[str, str]) -> None:
    script = run(BIN / "trimtab", _TRIMTAB_COMPLETE=f"source_{shell}")
    assert f"_TRIMTAB_COMPLETE=complete_{shell}" in script.stdout
    found = run(BIN / "trimtab", _TRIMTAB_COMPLETE=f"complete_{shell}", **asked).stdout
    assert "--concurrency" in found
    assert "--gpu" not in found


def test_the_action_lints(tmp_path: Path) -> None:
    action = YAML(typ="safe").load((ROOT / "action.yml").read_text())
    step = action["runs"]["steps"][-1]
    inputs = {name: field["default"] for name, field in action["inputs"].items()}
    (tmp_path / "serve.sh").write_text("vllm serve m --swap-space 4\n")
    given = {**inputs, "files": str(tmp_path), "vllm": "0.26"}
    env = {
        name: given[re.sub(r"\W*inputs\.([\w-]+)\W*", r"\1", text.strip("${} "))] for name, text in step["env"].items()
    }
    done = run("bash", "-e", "-c", step["run"], PATH=f"{BIN}:{os.environ['PATH']}", **env)
    assert done.returncode == 1, done.stderr
    assert re.search(r"^::error file=.*serve\.sh,line=1,col=14,title=CMD002", done.stdout, re.MULTILINE)


def test_the_chart_names_what_its_values_hold_and_its_configuration_is_one(tmp_path: Path) -> None:
    chart = ROOT / "charts" / "trimtab-gateway"
    values = YAML(typ="safe").load((chart / "values.yaml").read_text())
    template = (chart / "templates" / "gateway.yaml").read_text()
    for path in re.findall(r"\.Values\.([\w.]+)", template):
        held = values
        for part in path.split("."):
            assert part in held, path
            held = held[part]
    assert YAML(typ="safe").load((chart / "Chart.yaml").read_text())["appVersion"] == trimtab.__version__
    file = tmp_path / "gateway.yaml"
    with file.open("w") as stream:
        YAML(typ="safe").dump({**values["config"], "listen": "127.0.0.1:0"}, stream)
    judged = run(BIN / "trimtab", "gateway", "check", file, XDG_STATE_HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path))
    assert judged.returncode == 0, judged.stdout + judged.stderr
