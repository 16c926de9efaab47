"""How `up` is told to keep a server alive."""

from __future__ import annotations

import pytest

from trimtab.cli.draining import EngineDrain, engine_drain
from trimtab.cli.keeping import Keep, asked_bounds, pins_of
from trimtab.engine.command import LaunchCommand
from trimtab.errors import UsageError


def test_what_was_asked_for_is_kept_and_what_was_given_is_pinned() -> None:
    assert asked_bounds(["dtype=half"], 8192, None) == ("dtype=half", "max-model-len>=8192")
    assert pins_of(["--seed"], ["--max-model-len", "512", "--no-enable-prefix-caching"]) == (
        "--seed", "max-model-len", "enable-prefix-caching",
    )  # fmt: skip
    assert pins_of(None, ["vllm", "serve", "m", "--seed", "1"]) == ()
    assert pins_of(None, []) == pins_of(None, None) == ()


@pytest.mark.parametrize("name", ["max-num-sequences", "", "--max_num_sequences"])
def test_a_misspelt_flag_would_protect_nothing(name: str) -> None:
    with pytest.raises(UsageError, match="--pin names ") as refused:
        pins_of([name], None)
    assert refused.value.hint is not None
    with pytest.raises(UsageError, match="--keep names 'max-model-length'") as refused:
        Keep(bounds=("max-model-length>=512",)).require_sound()
    assert "--max-model-len" in str(refused.value.hint)


def test_names_are_taken_as_users_write_them() -> None:
    assert pins_of(["--max_num_seqs", "kv-cache-dtype", "compilation-config.mode"], None)
    Keep(bounds=("--max_model_len>=512",)).require_sound()


@pytest.mark.parametrize(
    ("keep", "said"),
    [
        (Keep(bounds=("max-model-len>=9000", "max-model-len<=100")), "leave no value"),
        (Keep(bounds=("max-model-len>=nan",)), "is no bound"),
        (Keep(bounds=("max-model-len>=1e999",)), "is no bound"),
        (Keep(hang_s=float("nan")), "--hang-timeout takes seconds"),
        (Keep(drain_s=float("inf")), "--drain takes seconds"),
    ],
)
def test_what_no_value_could_keep_to_is_refused(keep: Keep, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        keep.require_sound()
    Keep(bounds=("max-model-len>=512", "max-model-len<=512", "max-num-seqs<=4")).require_sound()


OURS, THEIRS, NOBODYS = EngineDrain(25, ("--shutdown-timeout", "25")), EngineDrain(7), EngineDrain()


@pytest.mark.parametrize(
    ("words", "version", "environ", "found"),
    [
        pytest.param("", "0.32.0+cpu", {}, OURS, id="new"),
        pytest.param("", "0.18.0", {}, OURS, id="first"),
        pytest.param("", "0.17.1", {}, NOBODYS, id="old"),
        pytest.param("", "unknown", {}, NOBODYS, id="unknown"),
        pytest.param("--shutdown-timeout 7", "0.33.0", {}, THEIRS, id="given"),
        pytest.param("--shutdown_timeout=0", "0.33.0", {}, NOBODYS, id="given-off"),
        pytest.param("--shutdown-timeout x", "0.33.0", {}, NOBODYS, id="given-wrong"),
        pytest.param("-dp 2", "0.33.0", {}, NOBODYS, id="data-parallel"),
        pytest.param("-tp 2 --data-parallel-size 1", "0.33.0", {}, OURS, id="tensor-parallel"),
        pytest.param("--api-server-count 4", "0.33.0", {}, NOBODYS, id="api-servers"),
        pytest.param("--headless", "0.33.0", {}, NOBODYS, id="headless"),
        pytest.param("", "0.33.0", {"VLLM_RUST_FRONTEND_PATH": "/f"}, NOBODYS, id="another-front-end"),
    ],
)
def test_which_engine_lets_requests_end(words: str, version: str, environ: dict[str, str], found: EngineDrain) -> None:
    command = LaunchCommand.from_argv(["vllm", "serve", "m", *words.split()])
    assert engine_drain(command, version, environ, 24.3) == found


def test_nothing_is_added_where_requests_are_to_be_cut_off() -> None:
    assert engine_drain(LaunchCommand.from_argv(["vllm", "serve", "m"]), "0.33.0", {}, 0.0) == NOBODYS
