"""The planner against cases that were worked out by hand: `tests/data/plans.yaml` holds the arithmetic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from msgspec.structs import replace
from ruamel.yaml import YAML

from trimtab.cli.main import run
from trimtab.facts.catalogue.lookup import find_model
from trimtab.facts.gpu import cpu, parse_gpus
from trimtab.plan.memory.card import cards_of
from trimtab.plan.parallel import refusals, stages
from trimtab.plan.planner import Plan, Task, Wish, plan, splits

CASES = Path(__file__).parents[1] / "data" / "plans.yaml"
GIB = 2**30
FAR = 1 << 20
"""Tokens, beyond every window."""


class Wished(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    context: int
    concurrency: int


class Split(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tensor: int
    pipeline: int
    data: int
    expert: bool
    holds: Literal["yes", "no", "unsure"]

    @property
    def text(self) -> str:
        return f"tp{self.tensor}-pp{self.pipeline}-dp{self.data}{'-ep' if self.expert else ''}"


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
    refused: bool = False


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
        self.verdict = str(report["verdict"])
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
    assert (given.verdict == "fits") == given.fits
    assert (given.verdict == "unsupported") == case.refused
    if case.verdict == "does not fit":
        assert not given.fits or (case.fp8_kv == "may" and given.fp8_cache())
    elif case.verdict == "fits":
        assert given.fits, given.budget["reasons"]
    _flags(case, given)
    ranks = ranks_of(case, given)
    if given.fits:
        assert ranks.split.holds != "no" or given.fp8_cache()
        assert given.budget["max_model_len"] == case.wish.context
    if case.gpus != "cpu":
        inside(case.card_gib, given.budget["gpu"]["total_gib"], "a card, GiB")


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


EACH = [(case, ranks) for case in READ for ranks in case.ranks]


def _task(case: Case, **pinned: object) -> Task:
    gpus = cpu(case.card_gib[0]) if case.gpus == "cpu" else parse_gpus(case.gpus)
    return Task(case.model, "m", find_model(case.model).facts(), cards_of(gpus), case.vllm, pinned)


@pytest.mark.parametrize(("case", "ranks"), EACH, ids=[f"{case.id}-{ranks.split.text}" for case, ranks in EACH])
def test_each_split_is_as_worked_out(case: Case, ranks: Ranks) -> None:
    """Also those that the planner does not choose: they are set by the user."""
    split = ranks.split
    sizes = {"tensor": split.tensor, "pipeline": split.pipeline, "data": split.data}
    pinned: dict[str, object] = {f"{kind}_parallel_size": size for kind, size in sizes.items()}
    made = plan(
        _task(case, **pinned, enable_expert_parallel=split.expert), Wish(case.wish.context, case.wish.concurrency)
    )
    if split.holds != "unsure" and not (case.fp8_kv and not made.fits):
        assert made.fits == (split.holds == "yes"), made.reasons
    fullest = max(rank.weights.value for rank in made.budget.ranks)
    inside(ranks.weights_gib, fullest, "weights of the fullest rank, GiB")
    _request(case, ranks, made)
    if made.fits:  # what does not fit is shown with the smallest batch and without graphs, beside which more is left
        inside(ranks.kv_left_gib, made.budget.tightest.kv_cache.value, "KV cache of a rank, GiB")
        inside(ranks.longest_context, made.budget.capacity.longest_len, "longest context")
        inside(ranks.requests_at_context, int(made.holds), "requests at full context, all data ranks together")


def _request(case: Case, ranks: Ranks, made: Plan) -> None:
    """What a request takes of the fullest stage: bytes a token beyond all windows, and what does not grow."""
    budget = made.budget
    cut = stages(budget.model.num_layers, ranks.split.pipeline)
    far, near = (max(budget.layout.request_bytes(s, n) for s in cut) for n in (2 * FAR, FAR))
    per_token = (far - near) / FAR
    inside((ranks.kv_bytes_per_token * 0.999, ranks.kv_bytes_per_token * 1.001), per_token, "bytes a token")
    least, most = ranks.kv_fixed_bytes_per_sequence
    block = budget.layout.block_size * per_token
    inside((least * 0.99, most * 1.01 + block), near - per_token * FAR, "bytes of a request that do not grow")


@pytest.mark.parametrize("case", READ, ids=[case.id for case in READ])
def test_tensor_sizes_are_those_that_vllm_takes(case: Case) -> None:
    model = find_model(case.model).facts()
    found = [n for n in range(1, max(case.tensor_sizes) + 1) if not refusals(model, n, 1)]
    assert found == case.tensor_sizes


@pytest.mark.parametrize("case", READ, ids=[case.id for case in READ])
def test_no_other_split_would_do(case: Case) -> None:
    """The data leave out splits of all cards that do not hold, and experts by count on tensor ranks alone, which take
    what the same ranks take without."""
    listed = {(r.split.tensor, r.split.pipeline, r.split.data, r.split.expert) for r in case.ranks}
    task = _task(case)
    for split in splits(task):
        sizes = (split.tensor, split.pipeline, split.data)
        same = {(*sizes, split.experts), (*sizes, split.experts and split.data > 1)}
        if split.cards == len(task.cards) and not same & listed:
            found = plan(replace(task, pinned=split.flags), Wish(case.wish.context, case.wish.concurrency))
            assert not found.fits, split.text


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
        assert split.holds == "no" if case.refused else enough == (split.holds != "no")
    assert case.verdict == ("fits" if "yes" in holds else "unsure" if "unsure" in holds else "does not fit")
