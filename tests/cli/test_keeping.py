"""How `up` is told to keep a server alive."""

from __future__ import annotations

from trimtab.cli.keeping import asked_bounds, pins_of


def test_what_was_asked_for_is_kept_and_what_was_given_is_pinned() -> None:
    assert asked_bounds(["dtype=half"], 8192, None) == ("dtype=half", "max-model-len>=8192")
    assert pins_of(["--seed"], ["--max-model-len", "512", "--no-enable-prefix-caching"]) == (
        "--seed", "max-model-len", "enable-prefix-caching",
    )  # fmt: skip
    assert pins_of(None, ["vllm", "serve", "m", "--seed", "1"]) == ()
    assert pins_of(None, []) == pins_of(None, None) == ()
