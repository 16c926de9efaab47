"""GGUF headers read from bytes: metadata as config keys, and every tensor's type, shape and size.

Format: ggml's docs/gguf.md (versions 2 and 3); block sizes: ggml/src/ggml-common.h.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.errors import ModelError
from trimtab.facts.tensors import Tensor, TensorHeaders
from trimtab.messages import Message, msg

MAGIC = b"GGUF"
MOST_ITEMS = 1 << 24
MOST_TEXT = 1 << 26
_STRING_BYTES = msg("bytes of one string")
MOST_NESTED = 4
TYPES: dict[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 36), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17),
}  # fmt: skip
"""ggml type -> name, elements of a block, bytes of a block."""
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_TEXT, _ARRAY = 8, 9


class Gguf(msgspec.Struct, frozen=True):
    """A GGUF file's header. `metadata` keeps arrays as their length alone when they are long (token lists)."""

    version: int
    metadata: Mapping[str, Any]
    headers: TensorHeaders
    header_bytes: int

    @property
    def size_bytes(self) -> int:
        """Bytes of all tensors whose type is known."""
        return self.headers.size_bytes


class NeedMore(ModelError):
    """The bytes end inside the header: fetch at least `wanted` of them."""

    def __init__(self, message: Message, wanted: int) -> None:
        super().__init__(message, hint=msg("Download the file again: a partial download looks like this."))
        self.wanted = wanted


class _Reader:
    def __init__(self, data: bytes, file: str) -> None:
        self.data, self.at, self.file = data, 0, file

    def take(self, n: int) -> bytes:
        end = self.at + n
        if end > len(self.data):
            raise NeedMore(
                msg("{file} is cut off: its header needs {need:,} bytes, {have:,} are there", file=self.file, need=end,
                    have=len(self.data)), end,
            )  # fmt: skip
        found = self.data[self.at : end]
        self.at = end
        return found

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def count(self, what: Message, most: int) -> int:
        n = int(self.number("<Q"))
        if n > most:
            raise broken(self.file, msg("it claims {n:,} {what}", n=n, what=what))
        return n

    def text(self) -> str:
        return self.take(self.count(_STRING_BYTES, MOST_TEXT)).decode("utf-8", "replace")


def broken(file: str, reason: Message) -> ModelError:
    return ModelError(
        msg("{file} is not a usable GGUF file: {reason}", file=file, reason=reason),
        hint=msg("Download the file again: a broken or partial download looks like this."),
    )


def read_gguf(data: bytes, *, file: str = "model.gguf", file_bytes: int | None = None) -> Gguf:
    """Read the header from a file's first bytes. NeedMore: they end too early; ModelError: not GGUF, or it lies.

    A tensor whose type is not in TYPES counts no bytes and its type is named in `headers.unknown_types`.
    """
    reader = _Reader(data, file)
    magic = reader.take(4)
    if magic != MAGIC:
        raise broken(file, msg("it begins with {magic}, not GGUF", magic=repr(magic)))
    version = int(reader.number("<I"))
    if version not in (2, 3):
        raise broken(file, msg("version {version} (2 and 3 are known)", version=version))
    tensors, pairs = reader.count(msg("tensors"), MOST_ITEMS), reader.count(msg("metadata entries"), MOST_ITEMS)
    metadata: dict[str, Any] = {}
    for _ in range(pairs):
        key = reader.text()
        metadata[key] = _value(reader, int(reader.number("<I")), 0)
    found, unknown, last = [], set(), 0
    for _ in range(tensors):
        tensor, offset, known = _tensor(reader)
        found.append(tensor)
        if not known:
            unknown.add(tensor.dtype)
        last = max(last, offset + tensor.size_bytes)
    if file_bytes is not None and reader.at + last > file_bytes:
        short = msg("its tensors end at {need:,} bytes; the file has {have:,}", need=reader.at + last, have=file_bytes)
        raise broken(file, short)
    return Gguf(version, metadata, TensorHeaders(tuple(found), tuple(sorted(unknown))), reader.at)


def _value(reader: _Reader, kind: int, depth: int) -> Any:
    if kind in _SCALARS:
        return reader.number(_SCALARS[kind])
    if kind == _TEXT:
        return reader.text()
    if kind == _ARRAY and depth < MOST_NESTED:
        inner, n = int(reader.number("<I")), reader.count(msg("array elements"), MOST_ITEMS)
        if inner in _SCALARS:
            size = struct.calcsize(_SCALARS[inner])
            raw = reader.take(n * size)
            return [v for (v,) in struct.iter_unpack(_SCALARS[inner], raw)] if n <= 4096 else n
        values = [_value(reader, inner, depth + 1) for _ in range(n)]
        return values if n <= 4096 else n
    raise broken(reader.file, msg("a metadata value has the unknown type {kind}", kind=kind))


def _tensor(reader: _Reader) -> tuple[Tensor, int, bool]:
    name = reader.text()
    dims = int(reader.number("<I"))
    if dims > 8:
        raise broken(reader.file, msg("tensor {name} has {dims} dimensions", name=name, dims=dims))
    shape = tuple(int(reader.number("<Q")) for _ in range(dims))
    kind, offset = int(reader.number("<I")), int(reader.number("<Q"))
    if any(n >= 1 << 40 for n in shape) or offset >= 1 << 50:
        raise broken(reader.file, msg("tensor {name} has shape {shape}", name=name, shape=list(shape)))
    if kind not in TYPES:
        return Tensor(name, f"type {kind}", shape[::-1], 0), offset, False
    label, block, size = TYPES[kind]
    elements = 1
    for n in shape:
        elements *= n
    return Tensor(name, label, shape[::-1], -(-elements // block) * size), offset, True


ARCHITECTURES = {
    "llama": ("LlamaForCausalLM", "llama"), "qwen2": ("Qwen2ForCausalLM", "qwen2"),
    "qwen3": ("Qwen3ForCausalLM", "qwen3"),
    "qwen2moe": ("Qwen2MoeForCausalLM", "qwen2_moe"), "qwen3moe": ("Qwen3MoeForCausalLM", "qwen3_moe"),
    "gemma": ("GemmaForCausalLM", "gemma"), "gemma2": ("Gemma2ForCausalLM", "gemma2"),
    "gemma3": ("Gemma3ForCausalLM", "gemma3_text"), "phi3": ("Phi3ForCausalLM", "phi3"),
    "starcoder2": ("Starcoder2ForCausalLM", "starcoder2"), "deepseek2": ("DeepseekV2ForCausalLM", "deepseek_v2"),
    "gpt-oss": ("GptOssForCausalLM", "gpt_oss"), "command-r": ("CohereForCausalLM", "cohere"),
    "granite": ("GraniteForCausalLM", "granite"), "gpt2": ("GPT2LMHeadModel", "gpt2"),
    "falcon": ("FalconForCausalLM", "falcon"), "stablelm": ("StableLmForCausalLM", "stablelm"),
    "mistral3": ("MistralForCausalLM", "mistral"), "glm4": ("Glm4ForCausalLM", "glm4"),
}  # fmt: skip
"""general.architecture -> the architecture and model_type that transformers gives it."""
_KEYS = {
    "embedding_length": "hidden_size", "block_count": "num_hidden_layers", "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads", "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim", "attention.value_length": "v_head_dim",
    "context_length": "max_position_embeddings",
    "vocab_size": "vocab_size", "expert_count": "num_experts", "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size", "attention.sliding_window": "sliding_window",
    "attention.kv_lora_rank": "kv_lora_rank", "attention.q_lora_rank": "q_lora_rank",
    "rope.dimension_count": "qk_rope_head_dim", "leading_dense_block_count": "first_k_dense_replace",
    "expert_shared_count": "n_shared_experts",
}  # fmt: skip
_LATENT_ONLY = ("qk_rope_head_dim", "v_head_dim")


def config_of(gguf: Gguf) -> dict[str, Any]:
    """The config.json that these metadata amount to; ModelError where general.architecture is not one we know."""
    name = gguf.metadata.get("general.architecture")
    if name not in ARCHITECTURES:
        raise ModelError(
            msg("the GGUF architecture {name} is not known", name=repr(name)),
            hint=msg("Give the config.json of the model that it was made from."),
        )
    architecture, model_type = ARCHITECTURES[name]
    config: dict[str, Any] = {"architectures": [architecture], "model_type": model_type, "torch_dtype": "float16"}
    for key, ours in _KEYS.items():
        value = gguf.metadata.get(f"{name}.{key}")
        if value is not None:
            config[ours] = value
    if "kv_lora_rank" in config:
        config["qk_nope_head_dim"] = config.pop("head_dim", 0) - config.get("qk_rope_head_dim", 0)
    else:
        for key in _LATENT_ONLY:
            config.pop(key, None)
    _from_tensors(gguf, config)
    return config


def _from_tensors(gguf: Gguf, config: dict[str, Any]) -> None:
    """What only the tensors tell: the vocabulary, and whether the output matrix is the embedding."""
    shapes = {t.name: t.shape for t in gguf.headers.tensors}
    table = shapes.get("token_embd.weight")
    if table:
        config["vocab_size"] = table[0]
    config["tie_word_embeddings"] = "output.weight" not in shapes
    config["quantization_config"] = {"quant_method": "gguf"}
