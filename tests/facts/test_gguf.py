"""GGUF headers made by hand: what they say, and every way in which they can lie."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.errors import ModelError
from trimtab.facts.gguf import MAGIC, NeedMore, config_of, read_gguf
from trimtab.facts.gguf_model import read_gguf_model

Q4_K, Q6_K, F32 = 12, 14, 0


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def pair(key: str, value: int | str) -> bytes:
    if isinstance(value, str):
        return text(key) + struct.pack("<I", 8) + text(value)
    return text(key) + struct.pack("<II", 4, value)


def tensor(name: str, shape: tuple[int, ...], kind: int, offset: int = 0) -> bytes:
    dims = struct.pack(f"<{len(shape)}Q", *reversed(shape))
    return text(name) + struct.pack("<I", len(shape)) + dims + struct.pack("<IQ", kind, offset)


def gguf(pairs: list[bytes], tensors: list[bytes], *, magic: bytes = MAGIC, version: int = 3) -> bytes:
    return magic + struct.pack("<IQQ", version, len(tensors), len(pairs)) + b"".join(pairs) + b"".join(tensors)


LLAMA_3B = {
    "embedding_length": 3072, "block_count": 2, "feed_forward_length": 8192, "attention.head_count": 24,
    "attention.head_count_kv": 8, "attention.key_length": 128, "attention.value_length": 128, "context_length": 131072,
}  # fmt: skip


def small_llama(kind: int = Q4_K, value_kind: int = Q6_K) -> bytes:
    pairs = [pair("general.architecture", "llama"), *(pair(f"llama.{k}", v) for k, v in LLAMA_3B.items())]
    tensors = [tensor("token_embd.weight", (128256, 3072), Q6_K)]
    for i in range(2):
        tensors += [
            tensor(f"blk.{i}.attn_q.weight", (3072, 3072), kind),
            tensor(f"blk.{i}.attn_k.weight", (1024, 3072), kind),
            tensor(f"blk.{i}.attn_v.weight", (1024, 3072), value_kind),
            tensor(f"blk.{i}.attn_output.weight", (3072, 3072), kind),
            tensor(f"blk.{i}.ffn_gate.weight", (8192, 3072), kind),
            tensor(f"blk.{i}.ffn_up.weight", (8192, 3072), kind),
            tensor(f"blk.{i}.ffn_down.weight", (3072, 8192), value_kind),
        ]
    return gguf(pairs, tensors)


def test_metadata_become_a_config() -> None:
    config = config_of(read_gguf(small_llama()))
    assert config["architectures"] == ["LlamaForCausalLM"]
    assert (config["hidden_size"], config["num_key_value_heads"], config["vocab_size"]) == (3072, 8, 128256)
    assert config["tie_word_embeddings"] is True


def test_facts_have_the_bytes_of_the_file() -> None:
    header = read_gguf(small_llama())
    facts = read_gguf_model(header)
    norms = 2 * sum(w.parameters for w in facts.weights if w.part == "norm")
    assert facts.missing == ()
    assert facts.stored_bytes == pytest.approx(header.size_bytes + norms, abs=64)
    assert len({id(layer) for layer in facts.layers}) == 1


def test_an_unknown_type_is_named_and_counts_as_16_bit() -> None:
    known, unknown = read_gguf_model(read_gguf(small_llama())), read_gguf_model(read_gguf(small_llama(kind=99)))
    assert unknown.missing == ("GGUF tensor type 99",)
    assert unknown.stored_bytes > known.stored_bytes


def test_an_unknown_architecture() -> None:
    header = read_gguf(gguf([pair("general.architecture", "nothing")], []))
    with pytest.raises(ModelError, match="GGUF architecture 'nothing' is not known"):
        config_of(header)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (gguf([], [], magic=b"GGML"), "it begins with b'GGML', not GGUF"),
        (gguf([], [], version=1), "version 1"),
        (MAGIC + struct.pack("<IQQ", 3, 1 << 60, 0), "it claims 1,152,921,504,606,846,976 tensors"),
        (gguf([text("k") + struct.pack("<I", 77)], []), "unknown type 77"),
        (gguf([], [text("t") + struct.pack("<I", 9)]), "has 9 dimensions"),
        (gguf([], [tensor("t", (1 << 50,), F32)]), "tensor t has shape"),
        (MAGIC + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1 << 50), "bytes of one string"),
    ],
)
def test_what_is_wrong_is_said(data: bytes, reason: str) -> None:
    with pytest.raises(ModelError) as caught:
        read_gguf(data)
    assert reason in str(caught.value)


def test_a_short_read_says_how_much_to_fetch() -> None:
    data = small_llama()
    with pytest.raises(NeedMore) as caught:
        read_gguf(data[:100])
    assert 100 < caught.value.wanted <= len(data)


def test_tensors_past_the_end_of_the_file() -> None:
    data = gguf([], [tensor("t", (1024,), F32, offset=10)])
    with pytest.raises(ModelError, match=r"its tensors end at [\d,]+ bytes; the file has 200"):
        read_gguf(data, file_bytes=200)


@given(st.integers(0, len(small_llama()) - 1), st.integers(0, 255))
def test_any_flipped_byte_is_read_or_refused(at: int, value: int) -> None:
    data = bytearray(small_llama())
    data[at] = value
    try:
        header = read_gguf(bytes(data))
        facts = read_gguf_model(header)
    except ModelError:
        return
    assert facts.stored_bytes >= 0


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        assert read_gguf(MAGIC + data).header_bytes > 0
    except ModelError:
        return
