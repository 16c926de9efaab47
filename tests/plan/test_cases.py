"""The planner against cases that were worked out by hand: `tests/data/plans.yaml` holds the arithmetic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from ruamel.yaml import YAML

from trimtab.cli.main import run

CASES = Path(__file__).parents[1] / "data" / "plans.yaml"
GIB = 2**30


class Wished(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    context: int
    concurrency: int


class Split(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tensor: int
    pipeline: int
    data: int
    expert: bool
    holds: Literal["yes", "no", "unsure"]


class Ranks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    split: Split
    weights_gib: tuple[float, float]
    kv_bytes_per_token: int
    kv_left_gib: tuple[float, float]
    longest_context: tuple[int, int]
    requests_at_context: tuple[int, int]
    kv_fixed_bytes_per_sequence: tuple[int, int] = (0, 0)


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    title: str
    model: str
    gpus: str
    nodes: int
    vllm: str
    wish: Wished
    card_gib: tuple[float, float]
    tensor_sizes: list[int]
    dtype: list[str]
    verdict: Literal["fits", "does not fit", "unsure"]
    ranks: list[Ranks]
    arithmetic: str
    sources: list[str]
    never: list[str] = []
    fp8_kv: Literal["", "may"] = ""


def _read() -> list[Case]:
    return msgspec.convert(YAML(typ="safe").load(CASES.read_text("utf-8")), list[Case])


READ = _read()


class Answer:
    """What the planner said: exit code, and the report that `--json` prints."""

    def __init__(self, code: int, report: dict[str, Any]) -> None:
        self.code = code
        self.command = [str(word) for word in report["command"]]
        self.budget: dict[str, Any] = report["budget"]
        self.fits = bool(report["fits"])
        self.codes = [finding["code"] for finding in report["findings"]]

    def flag(self, name: str, absent: str) -> str:
        return self.command[self.command.index(name) + 1] if name in self.command else absent

    def split(self) -> tuple[int, int, int, bool]:
        sizes = [int(self.flag(f"--{kind}-parallel-size", "1")) for kind in ("tensor", "pipeline", "data")]
        return sizes[0], sizes[1], sizes[2], "--enable-expert-parallel" in self.command

    def fp8_cache(self) -> bool:
        return self.flag("--kv-cache-dtype", "auto").startswith("fp8")


def answer(case: Case, capsys: pytest.CaptureFixture[str]) -> Answer:
    wish = ["--context", str(case.wish.context), "--concurrency", str(case.wish.concurrency)]
    nodes = ["--nodes", str(case.nodes)] if case.nodes > 1 else []
    code = run(["plan", case.model, "--gpu", case.gpus, *wish, "--vllm", case.vllm, *nodes, "--json"])
    said = capsys.readouterr()
    assert said.out, said.err
    return Answer(code, json.loads(said.out))


def ranks_of(case: Case, given: Answer) -> Ranks:
    for ranks in case.ranks:
        split = ranks.split
        if (split.tensor, split.pipeline, split.data, split.expert) == given.split():
            return ranks
    raise AssertionError(f"{given.split()} (tensor, pipeline, data, expert) is no split of {case.id}")


def inside(bounds: tuple[float, float], value: float, what: str) -> None:
    assert bounds[0] <= value <= bounds[1], f"{what}: {value} is outside {bounds}"


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Models are known without the hub, whatever this machine has of them."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("case", READ, ids=[case.id for case in READ])
def test_the_planner_answers_as_worked_out(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    given = answer(case, capsys)
    assert given.code == (0 if given.fits else 1)
    if case.verdict == "does not fit":
        assert not given.fits or (case.fp8_kv == "may" and given.fp8_cache())
    elif case.verdict == "fits":
        assert given.fits, given.budget["reasons"]
    _flags(case, given)
    ranks = ranks_of(case, given)
    inside(ranks.weights_gib, given.budget["per_gpu"]["weights_gib"], "weights of a rank, GiB")
    assert given.budget["longest_len"] <= ranks.longest_context[1] * (2 if given.fp8_cache() else 1)
    if given.fits and not given.fp8_cache():
        assert ranks.split.holds != "no"
        _cache(case, ranks, given.budget)


def _flags(case: Case, given: Answer) -> None:
    words = " ".join(given.command)
    assert [flag for flag in case.never if flag in words] == []
    assert given.split()[0] in case.tensor_sizes
    dtype = given.flag("--dtype", "auto")
    assert dtype == "auto" or {"half": "float16", "float": "float32"}.get(dtype, dtype) in case.dtype
    if given.fits:
        assert int(given.flag("--max-model-len", "0")) >= case.wish.context
        assert int(given.flag("--max-num-seqs", "0")) * given.split()[2] >= case.wish.concurrency
        assert given.codes == []


def _cache(case: Case, ranks: Ranks, budget: dict[str, Any]) -> None:
    """The KV cache: its size, what a request takes of it, and how many and how long it holds."""
    left = budget["per_gpu"]["kv_cache_gib"]
    inside(ranks.kv_left_gib, left, "KV cache of a rank, GiB")
    inside(ranks.longest_context, budget["longest_len"], "longest context")
    assert budget["max_model_len"] == case.wish.context
    held = budget["max_concurrency"] * ranks.split.data  # the budget's number is that of one data rank
    inside(ranks.requests_at_context, int(held), "requests at full context")
    least, most = ranks.kv_fixed_bytes_per_sequence
    if most:
        tokens = case.wish.context * ranks.kv_bytes_per_token
        request = left * GIB / budget["max_concurrency"]
        inside(((tokens + least) * 0.99, (tokens + most) * 1.01), request, "bytes of one request on a rank")
    else:
        per_token = left * GIB / budget["kv_cache_tokens"]
        least = 0.95 if ranks.split.pipeline > 1 else 0.995  # the tightest stage may be one that caches a layer less
        inside((ranks.kv_bytes_per_token * least, ranks.kv_bytes_per_token * 1.005), per_token, "bytes a token")


@pytest.mark.parametrize("case", READ, ids=[case.id for case in READ])
def test_the_cases_agree_with_themselves(case: Case) -> None:
    """Slips of the pen in the data: bounds the wrong way round, too many ranks, a verdict that no split bears out."""
    cards = 1 if case.gpus == "cpu" else int(case.gpus.split("x")[0])
    holds = {ranks.split.holds for ranks in case.ranks}
    for ranks in case.ranks:
        split = ranks.split
        assert split.tensor * split.pipeline * split.data <= cards
        for low, high in (ranks.weights_gib, ranks.kv_left_gib, ranks.longest_context, ranks.requests_at_context):
            assert 0 <= low <= high
        request = case.wish.context * ranks.kv_bytes_per_token + ranks.kv_fixed_bytes_per_sequence[0]
        enough = ranks.kv_left_gib[1] * GIB >= -(-case.wish.concurrency // split.data) * request
        assert enough == (split.holds != "no")
    assert case.verdict == ("fits" if "yes" in holds else "unsure" if "unsure" in holds else "does not fit")
