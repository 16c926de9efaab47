"""Which files of a model repository vLLM needs: its configuration, its tokenizer and one format of weights."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

import msgspec

SIDE_FILES = (".json", ".txt", ".model", ".tiktoken", ".jinja", ".py", ".vocab", ".merges", ".bpe")
OTHER_FORMATS = ("onnx/", "openvino/", "original/", "metal/", "coreml/", "flax/", "gguf/", "mlx/", "ggml/", "runs/")
TRAINING = ("training_args*", "optimizer*", "scheduler*", "scaler*", "rng_state*", "trainer_state*")
"""What a trainer leaves beside the weights: also `.bin` and `.pt`, never read by vLLM."""
FORMATS = ("model*.safetensors", "*.safetensors", "*.bin", "*.pt")
"""In this order; the first that a repository has is taken. `consolidated*.safetensors` (Mistral's own format) holds the
same weights again, and vLLM before 0.11 cannot load it by default: so it comes second, as any other name."""


class RepoFile(msgspec.Struct, frozen=True):
    """A file of a repository: `size` in bytes and `sha256`, where the hub tells them (sha256: large files alone)."""

    name: str
    size: int | None = None
    sha256: str | None = None


def side_files(files: Iterable[RepoFile]) -> list[RepoFile]:
    """Configuration, tokenizer, chat template and code: everything but weights."""
    return [f for f in files if f.name.endswith(SIDE_FILES) and not f.name.startswith(OTHER_FORMATS)]


def json_files(files: Iterable[RepoFile]) -> list[RepoFile]:
    """What a plan needs: the JSON files at the top, without the vocabulary."""
    large = ("tokenizer.json", "vocab.json", "added_tokens.json", "special_tokens_map.json", "tekken.json")
    return [f for f in files if f.name.endswith(".json") and "/" not in f.name and f.name not in large]


def weight_files(files: Iterable[RepoFile]) -> list[RepoFile]:
    """The weights in the one format that vLLM would load; empty when the repository has none that it can."""
    found = [f for f in files if not any(fnmatchcase(f.name.rsplit("/", 1)[-1], word) for word in TRAINING)]
    top = [f for f in found if "/" not in f.name]
    for pattern in FORMATS:
        chosen = [f for f in top if fnmatchcase(f.name, pattern)]
        if chosen:
            return chosen + [f for f in found if fnmatchcase(f.name, "[0-9]_*/*" + pattern[pattern.rindex(".") :])]
    return []


def needed_files(files: Iterable[RepoFile]) -> list[RepoFile]:
    """Everything that vLLM needs to serve the model."""
    known = list(files)
    return side_files(known) + weight_files(known)


def formats(files: Iterable[RepoFile]) -> list[str]:
    """The file name endings of a repository, for saying what is there instead of weights."""
    return sorted({"." + f.name.rsplit(".", 1)[-1] for f in files if "." in f.name.lstrip(".")})
