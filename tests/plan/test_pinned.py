"""Flags after `--`: every word belongs to one, and what does not is named with what stands before it."""

import pytest

from trimtab.errors import UsageError
from trimtab.plan.pinned import flags_of, pinned_of


def test_values_are_read() -> None:
    found = pinned_of(flags_of(["--max-model-len", "8192", "--enforce-eager", "--no-enable-prefix-caching"]))
    assert found == {"max_model_len": 8192, "enforce_eager": True, "enable_prefix_caching": False}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["stray"], "'stray' after -- belongs to no flag"),
        (["--no-such-flag", "1"], "'1' stands after --no-such-flag, which takes no value"),
    ],
)
def test_a_word_that_belongs_to_no_flag(words: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        flags_of(words)
    assert str(caught.value) == said
