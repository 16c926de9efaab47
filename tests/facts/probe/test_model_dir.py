"""A model directory as it may lie on disk: whole, partial, broken, not a model at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from trimtab.errors import ModelError
from trimtab.facts.probe.model_dir import LFS_POINTER, read_model_dir

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}


def safetensors(*names: str) -> bytes:
    header = {n: {"dtype": "BF16", "shape": [4], "data_offsets": [i * 8, i * 8 + 8]} for i, n in enumerate(names)}
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(8 * len(names))


def make(root: Path, files: dict[str, bytes | object]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return root


def failure(directory: Path) -> str:
    with pytest.raises(ModelError) as caught:
        read_model_dir(directory)
    return f"{caught.value.message} -> {caught.value.hint}"


def test_one_file(tmp_path: Path) -> None:
    found = read_model_dir(
        make(
            tmp_path,
            {
                "config.json": CONFIG,
                "generation_config.json": {"temperature": 0.6},
                "model.safetensors": safetensors("a", "b"),
                "consolidated.safetensors": safetensors("same", "again"),
            },
        )
    )
    assert found.config == CONFIG
    assert found.generation_config == {"temperature": 0.6}
    assert found.tensors is not None
    assert [t.name for t in found.tensors.tensors] == ["a", "b"]
    assert found.tensors.size_bytes == 16


def test_shards(tmp_path: Path) -> None:
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    files = {"config.json": CONFIG, "model.safetensors.index.json": index, "model-1.safetensors": safetensors("a")}
    make(tmp_path, files)
    said = failure(tmp_path)
    assert "1 of 2 shards" in said
    assert "model-2.safetensors" in said
    make(tmp_path, {"model-2.safetensors": safetensors("b")})
    found = read_model_dir(tmp_path).tensors
    assert found is not None
    assert found.size_bytes == 16


def test_configuration_alone_is_enough_to_plan(tmp_path: Path) -> None:
    index = {"weight_map": {"a": "model-1.safetensors"}}
    found = read_model_dir(make(tmp_path, {"config.json": CONFIG, "model.safetensors.index.json": index}))
    assert found.tensors is None
    assert found.generation_config is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "config.json is not JSON"),
        (b"", "config.json is not JSON"),
        (b"\xff\xfe{}", "config.json is not JSON"),
        (b"[" * 100_000, "config.json is not JSON"),
        (b"[]", "config.json holds a list"),
        (LFS_POINTER + b"\noid sha256:0\nsize 1\n", "config.json is a Git LFS pointer"),
    ],
)
def test_config_that_is_none(tmp_path: Path, content: bytes, said: str) -> None:
    assert said in failure(make(tmp_path, {"config.json": content}))


def test_config_with_a_byte_order_mark(tmp_path: Path) -> None:
    assert read_model_dir(make(tmp_path, {"config.json": b"\xef\xbb\xbf{}"})).config == {}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "there is no"),
        ({"m.gguf": b"GGUF"}, "holds GGUF files"),
        ({"adapter_config.json": CONFIG}, "LoRA adapter"),
        ({"model_index.json": CONFIG}, "diffusion"),
        ({"inner/config.json": CONFIG}, "Did you mean"),
    ],
)
def test_no_config(tmp_path: Path, files: dict[str, bytes | object], said: str) -> None:
    text = failure(make(tmp_path, files))
    assert str(tmp_path / "config.json") in text
    assert said in text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (LFS_POINTER + b"\noid sha256:0\nsize 1\n", "is a Git LFS pointer"),
        (b"", "shorter than the 8"),
        (b"\xff" * 20, "header claims"),
        (safetensors("a")[:-4], "need 8 bytes"),
        (b"<html>\n<head><title>503", "header claims"),
    ],
)
def test_weights_that_are_none(tmp_path: Path, content: bytes, said: str) -> None:
    text = failure(make(tmp_path, {"config.json": CONFIG, "model.safetensors": content}))
    assert str(tmp_path / "model.safetensors") in text
    assert said in text


def test_no_directory(tmp_path: Path) -> None:
    assert "there is no model directory" in failure(tmp_path / "nothing")
    assert "is not a directory" in failure(make(tmp_path, {"file": b""}) / "file")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda d: (d / "config.json").mkdir(), "cannot read"),
        (lambda d: (d / "config.json").symlink_to("gone"), "there is no"),
        (lambda d: os.symlink("config.json", d / "config.json"), "cannot read"),
    ],
    ids=["directory", "dangling", "loop"],
)
def test_config_that_cannot_be_read(tmp_path: Path, spoil: Callable[[Path], object], said: str) -> None:
    spoil(tmp_path)
    assert said in failure(tmp_path)


@pytest.mark.parametrize(
    ("files", "held"),
    [
        ({}, None),
        ({"tokenizer_config.json": {}}, None),
        ({"tokenizer_config.json": {}, "tokenizer.json": {}}, False),
        ({"tokenizer_config.json": {"chat_template": "{{ messages }}"}}, True),
        ({"chat_template.jinja": b"{{ messages }}"}, True),
        ({"tokenizer_config.json": {}, "tokenizer.json": {}, "tekken.json": {}}, None),
    ],
)
def test_a_chat_template(tmp_path: Path, files: dict[str, bytes | object], held: bool | None) -> None:
    assert read_model_dir(make(tmp_path, {"config.json": CONFIG, **files})).chat_template is held


def test_what_modelopt_wrote_beside_the_config(tmp_path: Path) -> None:
    beside = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "group_size": 16}}
    found = read_model_dir(make(tmp_path, {"config.json": CONFIG, "hf_quant_config.json": beside}))
    assert found.config["quantization_config"]["quant_method"] == "modelopt"
    assert found.config["quantization_config"]["quantization"]["quant_algo"] == "NVFP4"


def test_the_config_s_own_quantisation_counts_more(tmp_path: Path) -> None:
    own = {**CONFIG, "quantization_config": {"quant_method": "fp8"}}
    beside = {"quantization": {"quant_algo": "NVFP4"}}
    found = read_model_dir(make(tmp_path, {"config.json": own, "hf_quant_config.json": beside}))
    assert found.config["quantization_config"] == {"quant_method": "fp8"}
