"""Rotary tables and derived context lengths under each kind of scaling."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trimtab.facts.catalogue.lookup import find_model
from trimtab.facts.model import read_model

FIXTURES = Path(__file__).parents[1] / "fixtures" / "models"


@pytest.mark.parametrize(
    ("model", "tables"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", ((131072, 128),)),
        ("deepseek-ai/DeepSeek-V2-Lite", ((163840, 64),)),
        ("google/gemma-3-4b-it", ((131072, 256), (1048576, 256))),
        ("Qwen/Qwen2-VL-7B-Instruct", ((131072, 128),)),
        ("Qwen/Qwen3.5-9B", ((1048576, 64),)),
        ("microsoft/Phi-3.5-mini-instruct", ((135168, 96),)),
        ("zai-org/GLM-4.5", ((131072, 64),)),
        ("EleutherAI/gpt-j-6b", ((2048, 64),)),
        ("facebook/opt-125m", ()),
        ("ai21labs/AI21-Jamba-1.5-Mini", ()),
    ],
)
def test_tables(model: str, tables: tuple[tuple[int, int], ...]) -> None:
    assert sorted(find_model(model).facts().rotary_tables) == sorted(tables)


@pytest.mark.parametrize(
    ("scaling", "positions"),
    [
        (None, 32768),
        ({"type": "linear", "factor": 4.0}, 131072),
        ({"rope_type": "dynamic", "factor": 2.0}, 65536),
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}, 131072),
        ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}, 32768),
        ({"type": "mrope", "mrope_section": [16, 24, 24]}, 32768),
        ({"rope_type": "longrope", "factor": 4.0}, 32768),
    ],
)
def test_context_after_scaling(scaling: dict[str, object] | None, positions: int) -> None:
    config = json.loads((FIXTURES / "qwen2.5-7b.json").read_text())
    assert read_model({**config, "rope_scaling": scaling}).max_positions == positions
