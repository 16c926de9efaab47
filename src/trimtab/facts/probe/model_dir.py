"""Read a model directory's own words: config.json, generation_config.json, the headers of its safetensors files, and
whether it holds a chat template.

What they mean is `facts.model`'s to say; here is only whether they can be read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from trimtab.errors import ModelError
from trimtab.facts.gguf import Gguf, NeedMore, read_gguf
from trimtab.facts.probe.repo_files import RepoFile, weight_files
from trimtab.facts.tensors import TensorHeaders, header_length, merge_headers, read_index, read_safetensors
from trimtab.messages import Message, msg

LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"
CONFIG_BYTES = 64 << 20  # a config.json larger than this is something else
GGUF_START, GGUF_MOST = 1 << 20, 256 << 20


class ModelFiles(msgspec.Struct, frozen=True):
    """What `facts.model.read_model` takes; `tensors` is None where there are no safetensors files to read."""

    directory: Path
    config: Mapping[str, Any]
    generation_config: Mapping[str, Any] | None
    tensors: TensorHeaders | None
    chat_template: bool | None = None


def read_model_dir(directory: Path) -> ModelFiles:
    """Read the directory. ModelError names the file and the reason: missing, not readable, not JSON, a Git LFS pointer,
    a broken safetensors file, a shard that the index names and that is not there.
    """
    _check_directory(directory)
    config = _with_own_quantisation(directory, read_json(directory / "config.json", _config_hint(directory)))
    generation = directory / "generation_config.json"
    return ModelFiles(
        directory=directory,
        config=config,
        generation_config=read_json(generation, _AGAIN) if generation.exists() else None,
        tensors=read_headers(directory),
        chat_template=holds_chat_template(directory),
    )


def _with_own_quantisation(directory: Path, config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The config with what ModelOpt up to 0.29 wrote beside it (vLLM 0.33 transformers_utils/config.py)."""
    beside = directory / "hf_quant_config.json"
    if config.get("quantization_config") is not None or not beside.exists():
        return config
    return {**config, "quantization_config": {"quant_method": "modelopt", **read_json(beside, _AGAIN)}}


TEMPLATE_FILES = ("chat_template.jinja", "chat_template.json", "additional_chat_templates")
VOCABULARIES = ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model")
OWN_TOKENIZERS = ("tekken.json", "params.json")


def holds_chat_template(directory: Path) -> bool | None:
    """Whether the files hold a chat template; None where the tokenizer is not among them (a config alone), or is
    Mistral's own, which needs none.
    """
    if any((directory / name).exists() for name in TEMPLATE_FILES):
        return True
    settings = directory / "tokenizer_config.json"
    if settings.exists() and read_json(settings, _AGAIN).get("chat_template"):
        return True
    if not settings.exists() or any((directory / name).exists() for name in OWN_TOKENIZERS):
        return None
    return False if any((directory / name).exists() for name in VOCABULARIES) else None


def read_json(file: Path, hint: Message) -> Mapping[str, Any]:
    """The object in a JSON file of a model."""
    data = _read(file, CONFIG_BYTES, hint)
    try:
        found = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ModelError(
            msg("{file} is not JSON: {reason}", file=file, reason=str(error)[:120]), hint=_AGAIN
        ) from error
    if not isinstance(found, dict):
        raise ModelError(
            msg("{file} holds a {kind}, not an object", file=file, kind=type(found).__name__),
            hint=_AGAIN,
        )
    return found


def only_gguf(path: Path) -> Path | None:
    """The GGUF file of a directory that holds one model in that form and no config.json; None of any other.

    A projector beside it ("mmproj-...") is not the model.
    """
    if not path.is_dir() or (path / "config.json").exists():
        return None
    found = [p for p in path.glob("*.gguf") if not p.name.startswith("mmproj")]
    return found[0] if len(found) == 1 else None


def read_gguf_file(file: Path) -> Gguf:
    """The header of a GGUF file. ModelError: not there, not GGUF, cut short, or a header that lies."""
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            data = stream.read(GGUF_START)
            while True:
                try:
                    return read_gguf(data, file=str(file), file_bytes=size)
                except NeedMore:
                    more = stream.read(len(data))
                    if not more or len(data) > GGUF_MOST:
                        raise
                    data += more
    except OSError as error:
        raise _unreadable(file, error) from error


def read_headers(directory: Path) -> TensorHeaders | None:
    """The headers of all safetensors files that vLLM would load; None without any."""
    index = directory / "model.safetensors.index.json"
    if index.exists():
        names = sorted(set(read_index(_read(index, CONFIG_BYTES, _AGAIN), file=str(index)).values()))
    else:
        entries = [RepoFile(p.name) for p in directory.iterdir()]
        names = sorted(f.name for f in weight_files(entries) if f.name.endswith(".safetensors"))
    lost = [name for name in names if not (directory / name).exists()]
    if lost and len(lost) == len(names):
        return None  # a directory with the configuration alone: enough to plan
    if lost:
        raise ModelError(
            msg("{n} of {all} shards that {index} names are not there, first {file}", n=len(lost), all=len(names),
                index=index, file=lost[0]),
            hint=_AGAIN,
        )  # fmt: skip
    return merge_headers(_header(directory / name) for name in names) if names else None


def _header(file: Path) -> TensorHeaders:
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            start = stream.read(max(8, len(LFS_POINTER)))
            if start.startswith(LFS_POINTER):
                raise _pointer(file)
            wanted = 8 + header_length(start, file_bytes=size, file=str(file))
            data = start + stream.read(max(0, wanted - len(start)))
    except OSError as error:
        raise _unreadable(file, error) from error
    return read_safetensors(data, file_bytes=size, file=str(file))


def _check_directory(directory: Path) -> None:
    try:
        if directory.is_dir():
            next(directory.iterdir(), None)
            return
        there = directory.exists()
    except OSError as error:
        raise _unreadable(directory, error) from error
    if there:
        raise ModelError(msg("{path} is not a directory", path=directory))
    raise ModelError(
        msg("there is no model directory {path}", path=directory),
        hint=msg("Check the path; a model on the hub is named OWNER/NAME."),
    )


def _read(file: Path, most: int, hint: Message) -> bytes:
    try:
        with file.open("rb") as stream:
            data = stream.read(most + 1)
    except FileNotFoundError as error:
        raise ModelError(msg("there is no {file}", file=file), hint=hint) from error
    except OSError as error:
        raise _unreadable(file, error) from error
    if data.startswith(LFS_POINTER):
        raise _pointer(file)
    if len(data) > most:
        raise ModelError(msg("{file} is larger than {most} MiB", file=file, most=most >> 20), hint=hint)
    return data


def _config_hint(directory: Path) -> Message:
    names = {p.name for p in directory.iterdir()}
    packed = sorted(name for name in names if name.endswith(".gguf"))
    if packed:
        return msg("It holds GGUF files: name one of them, such as {file}.", file=directory / packed[0])
    if "adapter_config.json" in names:
        return msg("This is a LoRA adapter: name its base model, and the adapter with --lora-modules.")
    if "model_index.json" in names:
        return msg("This is a diffusion pipeline, not a language model.")
    inside = sorted(p.name for p in directory.iterdir() if (p / "config.json").exists())
    if inside:
        return msg("Did you mean {path}?", path=directory / inside[0])
    return msg("A model directory holds config.json, a tokenizer and weights: download the model again.")


_AGAIN = msg("Download the file again: a broken or partial download looks like this.")


def _pointer(file: Path) -> ModelError:
    return ModelError(
        msg("{file} is a Git LFS pointer, not the file itself", file=file),
        hint=msg("Run in its directory: git lfs install, then git lfs pull; or download the model with hf download."),
    )


def _unreadable(file: Path, error: OSError) -> ModelError:
    return ModelError(
        msg("cannot read {file}: {reason}", file=file, reason=error.strerror or str(error)),
        hint=msg("Check the permissions of the file and of the directories above it."),
    )
