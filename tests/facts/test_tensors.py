"""Safetensors headers and indexes: what they say, and every way in which they can lie."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.errors import ModelError
from trimtab.facts.tensors import Tensor, header_length, merge_headers, read_index, read_safetensors

GOOD = {
    "__metadata__": {"format": "pt"},
    "a": {"dtype": "BF16", "shape": [4, 8], "data_offsets": [0, 64]},
    "b": {"dtype": "F8_E4M3", "shape": [16], "data_offsets": [64, 80]},
}


def header(entries: Any) -> bytes:
    body = json.dumps(entries).encode()
    return len(body).to_bytes(8, "little") + body


def test_a_good_header() -> None:
    data = header(GOOD)
    found = read_safetensors(data, file_bytes=len(data) + 80)
    assert found.tensors == (Tensor("a", "BF16", (4, 8), 64), Tensor("b", "F8_E4M3", (16,), 16))
    assert found.size_bytes == 80
    assert header_length(data[:8]) == len(data) - 8


def test_an_unknown_type_is_named() -> None:
    data = header({"a": {"dtype": "F3_WEIRD", "shape": [8], "data_offsets": [0, 3]}})
    found = read_safetensors(data)
    assert found.unknown_types == ("F3_WEIRD",)
    assert found.size_bytes == 3


def changed(**entry: Any) -> dict[str, Any]:
    return {"a": {"dtype": "BF16", "shape": [4, 8], "data_offsets": [0, 64], **entry}}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it has 0 bytes"),
        (b"\x00\x01", "it has 2 bytes"),
        ((1 << 40).to_bytes(8, "little"), "its header claims 1,099,511,627,776 bytes"),
        (header(GOOD)[:-5], "its header claims 168 bytes; 163 follow"),
        (header([1]), "its header is a list"),
        ((4).to_bytes(8, "little") + b"{a:1", "its header is not JSON"),
        (header(changed(data_offsets=[0, 60])), "tensor a of BF16 [4, 8] needs 64 bytes; its offsets span 60"),
        (header(changed(data_offsets=[64, 0])), "tensor a ends before it begins"),
        (header(changed(data_offsets="x")), "tensor a has data_offsets 'x'"),
        (header(changed(shape=[-1])), "tensor a has shape [-1]"),
        (header(changed(shape=None)), "tensor a has shape None"),
        (header(changed(dtype=7)), "tensor a has dtype 7"),
        (header({"a": 3}), "tensor a has data_offsets None"),
        (
            header({**changed(), "b": {"dtype": "U8", "shape": [8], "data_offsets": [60, 68]}}),
            "tensors a and b overlap",
        ),
        (
            header({**changed(), "b": {"dtype": "U8", "shape": [8], "data_offsets": [70, 78]}}),
            "6 bytes between a and b",
        ),
    ],
)
def test_what_is_wrong_is_said(data: bytes, reason: str) -> None:
    with pytest.raises(ModelError) as caught:
        read_safetensors(data)
    assert reason in str(caught.value)


def test_a_file_that_ends_before_its_tensors() -> None:
    data = header(GOOD)
    with pytest.raises(ModelError, match="its tensors need 80 bytes after the header; 70 are there"):
        read_safetensors(data, file_bytes=len(data) + 70)
    with pytest.raises(ModelError, match="its header claims 168 bytes; the file has 100"):
        header_length(data[:8], file_bytes=100)


def test_shards_are_merged_and_a_name_twice_is_an_error() -> None:
    one = read_safetensors(header(changed()))
    assert merge_headers([one]).size_bytes == 64
    with pytest.raises(ModelError, match="two shards both hold the tensor a"):
        merge_headers([one, one])


def test_an_index() -> None:
    assert read_index(b'{"weight_map": {"a": "x.safetensors"}}') == {"a": "x.safetensors"}
    for data in (b"{", b"[]", b'{"weight_map": {"a": 1}}', b"{}"):
        with pytest.raises(ModelError, match=r"model\.safetensors\.index\.json"):
            read_index(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=12,
)
ENTRY = st.fixed_dictionaries(
    {"dtype": st.sampled_from(["BF16", "F32", "I4"]) | JSON, "shape": st.lists(st.integers(-1, 9), max_size=3) | JSON},
    optional={"data_offsets": st.lists(st.integers(-1, 99), max_size=3) | JSON},
)


@given(st.dictionaries(st.text(max_size=6), ENTRY | JSON, max_size=4) | JSON)
def test_any_header_is_read_or_refused(entries: Any) -> None:
    try:
        assert read_safetensors(header(entries)).size_bytes >= 0
    except ModelError:
        return


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        read_safetensors(data)
    except ModelError:
        return
