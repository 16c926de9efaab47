"""What a model's name tells of its architecture."""

from __future__ import annotations

import pytest

from trimtab.rules.command.names import architecture_named


@pytest.mark.parametrize(
    ("name", "architecture"),
    [
        ("zai-org/GLM-4.5V", "Glm4vMoeForConditionalGeneration"),
        ("/models/GLM-4.5V-FP8", "Glm4vMoeForConditionalGeneration"),
        ("<Qwen2.5-Omni-7B>", "Qwen2_5OmniModel"),
        ("Qwen/Qwen3-VL-32B-Instruct", "Qwen3VLForConditionalGeneration"),
        ("Qwen/Qwen3-VL-235B-A22B-Instruct-FP8", "Qwen3VLMoeForConditionalGeneration"),
        ("/models/my-own", None),
        ("", None),
    ],
)
def test_architecture_named(name: str, architecture: str | None) -> None:
    assert architecture_named(name) == architecture
