"""The tables against what real parsers printed: no flag missing, none too many, same arity, default and spellings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trimtab.engine.flags import FlagTable
from trimtab.engine.flags.dump import from_parser_dump
from trimtab.errors import UsageError

DUMPS = Path(__file__).parents[1] / "fixtures" / "flags"


@pytest.mark.parametrize("file", sorted(DUMPS.glob("*.txt")), ids=lambda p: p.stem)
def test_table_equals_the_real_parser(file: Path) -> None:
    table = FlagTable.for_version(file.stem)
    ours = {f.name: (f.values, f.default, {*f.aliases, *f.negations}) for f in table.flags if f.entry is None}
    real = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        name, values, default, spellings = json.loads(line)
        real[name] = (values, default, set(spellings))
    assert table.source == file.stem
    assert ours == real


def test_the_installed_parser_wins() -> None:
    told = {
        "version": "0.32.0+cpu",
        "flags": [
            {"name": "--max-num-seqs", "values": "1", "default": 7, "aliases": [], "negations": []},
            {"name": "--of-a-plug-in", "values": "1", "default": None},
        ],
    }
    table = from_parser_dump(json.dumps(told), "cpu")
    assert table.from_engine
    assert table.default("--max-num-seqs") == 7
    seqs = table.find("--max-num-seqs")
    assert seqs is not None
    assert (seqs.kind, seqs.group) == ("int", "scheduler")
    assert table.find("--of-a-plug-in") is not None
    assert table.find("--port") is None


@pytest.mark.parametrize("data", ["", "Traceback", "{}", '{"version": "0.32", "flags": 3}', b"\xff\xfe"])
def test_not_a_dump(data: str | bytes) -> None:
    with pytest.raises(UsageError):
        from_parser_dump(data)
