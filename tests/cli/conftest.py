"""What tests of `up` share: a stand-in for vLLM in an environment of its own, a small model, a home."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes import vllm_install

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "float16", "hidden_size": 576,
    "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
    "vocab_size": 49152, "max_position_embeddings": 8192, "tie_word_embeddings": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return vllm_install.make(tmp_path_factory.mktemp("engine") / "venv")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A place for all of Trimtab's files; on the way out, nothing of it may run any more."""
    return tmp_path / "home"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    directory = tmp_path / "models" / "tiny-llama"
    directory.mkdir(parents=True)
    (directory / "config.json").write_text(json.dumps(CONFIG))
    (directory / "pytorch_model.bin").write_bytes(b"weights")
    return directory
