"""The flag tables and their look-ups, on facts read in vLLM's sources."""

from __future__ import annotations

import time

import pytest

from trimtab.engine import flags
from trimtab.engine.flags import FlagTable
from trimtab.errors import UsageError


def test_every_minor_from_4_to_33_has_a_table() -> None:
    assert flags.minors() == tuple(f"0.{n}" for n in range(4, 34))
    for minor in flags.minors():
        table = FlagTable.for_version(minor)
        assert table.source.startswith(f"{minor}.")
        assert table.note is None
        assert table.find("--max-model-len") is not None


def test_swap_space_ends_with_17() -> None:
    assert flags.history("--swap-space") == flags.Span(None, "0.17")
    assert FlagTable.for_version("0.17").find("--swap-space") is not None
    assert FlagTable.for_version("0.18").find("--swap-space") is None


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("--max_model_len", "--max-model-len"),
        ("max-model-len", "--max-model-len"),
        ("-tp", "--tensor-parallel-size"),
        ("tp", "--tensor-parallel-size"),
        ("--no-enable-prefix-caching", "--enable-prefix-caching"),
        ("--compilation-config.mode", "--compilation-config"),
        ("--max-model-len=4096", "--max-model-len"),
        ("-O3", "--optimization-level"),
        ("--disable-prefix-caching", "--enable-prefix-caching"),
    ],
)
def test_find_takes_every_spelling(spelling: str, name: str) -> None:
    found = FlagTable.for_version("0.33").find(spelling)
    assert found is not None
    assert found.name == name


def test_negation_is_told_from_the_flag() -> None:
    table = FlagTable.for_version("0.33")
    assert table.is_negated("--no_enable_prefix_caching")
    assert table.is_negated("--disable-prefix-caching")
    assert not table.is_negated("--enable-prefix-caching")


def test_unknown_name_gives_the_nearest() -> None:
    table = FlagTable.for_version("0.33")
    assert table.find("--max-modellen") is None
    assert table.nearest("--max-modellen")[0] == "--max-model-len"
    assert table.nearest("zzzzzzzzzzzz") == []


def test_batch_defaults_follow_memory_card_and_entry() -> None:
    table = FlagTable.for_version("0.33")
    assert table.default("--max-num-seqs", 22) == 256
    assert table.default("--max-num-seqs", 80, "NVIDIA H100 80GB HBM3") == 1024
    assert table.default("--max-num-seqs", 80, "NVIDIA A100-SXM4-80GB") == 256
    assert table.default("--max-num-batched-tokens", 80, "NVIDIA H100 80GB HBM3") == 8192
    assert table.default("--max-num-batched-tokens", 180, "NVIDIA B200") == 16384
    assert table.default("--max-num-batched-tokens", 80, "NVIDIA H100", entry="offline") == 16384
    assert FlagTable.for_version("0.33", "cpu").default("--max-num-seqs") == 128


def test_batch_defaults_of_the_v0_engine_are_not_those_of_v1() -> None:
    for minor in ("0.4", "0.6", "0.7"):
        table = FlagTable.for_version(minor)
        assert table.default("--max-num-seqs", 80, "NVIDIA H100") == 256
        assert table.default("--max-num-batched-tokens", 80, "NVIDIA H100") is None  # from max-model-len
    assert FlagTable.for_version("0.8").default("--max-num-batched-tokens", 80, "NVIDIA H100") == 8192


def test_default_of_gpu_memory_utilization() -> None:
    assert FlagTable.for_version("0.4").default("--gpu-memory-utilization") == 0.9
    assert FlagTable.for_version("0.33").default("--gpu-memory-utilization") == 0.92


def test_versions_without_a_table_say_so() -> None:
    newer = FlagTable.for_version("0.99.1")
    assert (newer.unknown_newer, newer.source) == (True, "0.33.0")
    assert newer.note is not None
    assert "0.99.1" in str(newer.note)
    older = FlagTable.for_version("v0.2.7")
    assert (older.older, older.source) == (True, "0.4.3")
    assert "read by that of 0.17.1" in str(FlagTable.for_version("0.17.9").note)
    assert FlagTable.for_version("0.8.5").note is None


@pytest.mark.parametrize("text", ["", "latest", "0", "1.x", "0.26..1", "\x00"])
def test_not_a_version(text: str) -> None:
    with pytest.raises(UsageError):
        FlagTable.for_version(text or " ")


@pytest.mark.parametrize("text", ["0.26", "v0.26.0", "0.26.0+cpu", "0.26.1rc1", "0.26.0.post1", "0.26.1.dev5+g123"])
def test_forms_of_a_version(text: str) -> None:
    assert FlagTable.for_version(text).source == "0.26.0"


def test_arity_over_all_versions() -> None:
    assert flags.arity("swap-space") == "1"
    assert flags.arity("enable-chunked-prefill") == "?"
    assert flags.arity("served-model-name") == "+"
    assert flags.arity("trust_remote_code") == "0"
    assert flags.arity("no-enable-prefix-caching") is None
    assert flags.arity("not-a-flag") is None
    assert flags.takes_value("--port") is True
    assert flags.takes_value("--enforce-eager") is False


def test_environment_variables() -> None:
    table = FlagTable.for_version("0.33")
    assert table.variable("VLLM_USE_V1") is None
    assert flags.history("VLLM_USE_V1") == flags.Span("0.6", "0.10")
    port = table.variable("VLLM_PORT")
    assert port is not None
    assert port.kind == "int"


def test_a_table_loads_fast() -> None:
    flags.FlagTable.for_version("0.32")
    started = time.perf_counter()
    FlagTable.for_version("0.31")
    assert time.perf_counter() - started < 0.015


def test_known_parsers_are_listed_but_open() -> None:
    for version, name in (("0.6", "hermes"), ("0.33", "hermes")):
        spec = FlagTable.for_version(version).find("--tool-call-parser")
        assert spec is not None
        assert spec.open
        assert name in spec.choices


def test_every_flag_stands_in_a_group() -> None:
    for minor in flags.minors():
        assert [f.name for f in FlagTable.for_version(minor).flags if not f.group] == []
