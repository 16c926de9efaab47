"""How `up` is told to keep a server alive."""

from __future__ import annotations

import pytest

from trimtab.cli.keeping import Keep, asked_bounds, pins_of
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
