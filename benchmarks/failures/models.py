"""Model directories for the failures: the demo model with one thing wrong, and small ones of other kinds."""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

LFS_POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 269060280\n"


def copy(demo: Path, into: Path) -> Path:
    """The demo model with its files linked, so that a change of one needs `own` first."""
    into.mkdir(parents=True)
    for file in demo.iterdir():
        os.symlink(file, into / file.name)
    return into


def own(model: Path, name: str) -> Path:
    """The file made the copy's own."""
    file = model / name
    target = file.resolve()
    file.unlink()
    shutil.copy(target, file)
    return file


def edit(name: str = "config.json", **changes: Any) -> Callable[[Path], None]:
    """Keys of a JSON file set; None removes one."""

    def change(model: Path) -> None:
        file = own(model, name)
        data = json.loads(file.read_text())
        data.update(changes)
        file.write_text(json.dumps({k: v for k, v in data.items() if v is not None}))

    return change


def without(*names: str) -> Callable[[Path], None]:
    """Files removed."""
    return lambda model: [(model / name).unlink() for name in names] and None


def text(name: str, content: str) -> Callable[[Path], None]:
    """A file with other content."""

    def change(model: Path) -> None:
        (model / name).unlink(missing_ok=True)
        (model / name).write_text(content)

    return change


def truncated(model: Path) -> None:
    """Half of the weights, as an interrupted download leaves them."""
    weights = (model / "model.safetensors").resolve()
    (model / "model.safetensors").unlink()
    with weights.open("rb") as whole, (model / "model.safetensors").open("wb") as half:
        half.write(whole.read(weights.stat().st_size // 2))


def broken_gguf(model: Path) -> None:
    """A GGUF header with nothing behind it, and a file that is none."""
    (model / "short.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 100, 20))
    (model / "none.gguf").write_bytes(b"<html>404 Not Found</html>")


def adapter(model: Path, rank: int = 64) -> None:
    """A LoRA adapter of the demo model for its first layer's q_proj, in `adapter/`."""
    folder = model / "adapter"
    folder.mkdir()
    config = {
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "r": rank, "lora_alpha": rank, "target_modules": ["q_proj"],
        "base_model_name_or_path": "demo", "bias": "none",
    }  # fmt: skip
    (folder / "adapter_config.json").write_text(json.dumps(config))
    stem = "base_model.model.model.layers.0.self_attn.q_proj"
    shapes = {f"{stem}.lora_A.weight": (rank, 576), f"{stem}.lora_B.weight": (576, rank)}
    header, end = {}, 0
    for name, shape in shapes.items():
        size = 2 * shape[0] * shape[1]
        header[name] = {"dtype": "F16", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    packed = json.dumps(header).encode()
    (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(packed)) + packed + bytes(end))


def both(*changes: Callable[[Path], None]) -> Callable[[Path], None]:
    """One after another."""
    return lambda model: [change(model) for change in changes] and None


def small(architecture: str, model_type: str, **more: Any) -> Callable[[Path], None]:
    """Another architecture, two layers of it, to be started with dummy weights and the demo's tokenizer."""
    config = {
        "architectures": [architecture], "model_type": model_type, "vocab_size": 49152, "hidden_size": 128,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 256,
        "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "hidden_act": "silu", "torch_dtype": "float16",
        "bos_token_id": 1, "eos_token_id": 2, "rope_theta": 10000.0, "tie_word_embeddings": False,
        "initializer_range": 0.02,
    }  # fmt: skip
    config.update(more)
    return both(without("model.safetensors"), text("config.json", json.dumps(config)))
