"""Safetensors headers and index files, read from bytes: names, types, shapes and sizes of a checkpoint's tensors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from trimtab.errors import ModelError
from trimtab.messages import Message, msg

MAX_HEADER_BYTES = 100_000_000
"""The reference implementation refuses longer headers (safetensors, src/tensor.rs, MAX_HEADER_SIZE)."""
BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
    "F64": 64, "I64": 64, "U64": 64, "C64": 64,
}  # fmt: skip
"""Bits of one element by the format's own type names (safetensors, src/tensor.rs, Dtype)."""


class Tensor(msgspec.Struct, frozen=True):
    """One tensor of a checkpoint: `dtype` in the file's own words, `size_bytes` as it lies there."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size_bytes: int

    @property
    def elements(self) -> int:
        total = 1
        for n in self.shape:
            total *= n
        return total


class TensorHeaders(msgspec.Struct, frozen=True):
    """All tensors of a checkpoint, of one file or of many shards."""

    tensors: tuple[Tensor, ...]
    unknown_types: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        return sum(t.size_bytes for t in self.tensors)


def header_length(start: bytes, *, file_bytes: int | None = None, file: str = "model.safetensors") -> int:
    """Bytes of the JSON header, from the file's first 8 bytes: what a range request has to fetch next."""
    if len(start) < 8:
        raise _broken(file, msg("it has {n} bytes, shorter than the 8 of a header's length", n=len(start)))
    length = int.from_bytes(start[:8], "little")
    if length > MAX_HEADER_BYTES:
        raise _broken(
            file, msg("its header claims {n:,} bytes; the format allows {most:,}", n=length, most=MAX_HEADER_BYTES)
        )
    if file_bytes is not None and length > file_bytes - 8:
        raise _broken(file, msg("its header claims {n:,} bytes; the file has {size:,}", n=length, size=file_bytes))
    return length


def read_safetensors(data: bytes, *, file_bytes: int | None = None, file: str = "model.safetensors") -> TensorHeaders:
    """Read a header from a file's first bytes (8 + header at least). `file_bytes` is the whole file's size.

    ModelError, naming `file`: truncated, a length that lies, not JSON, a tensor whose shape and offsets disagree, or
    tensors that overlap, leave a gap or end past the file.
    """
    length = header_length(data, file_bytes=file_bytes, file=file)
    if len(data) < 8 + length:
        raise _broken(file, msg("its header claims {n:,} bytes; {have:,} follow", n=length, have=len(data) - 8))
    try:
        header = json.loads(data[8 : 8 + length])
    except (ValueError, RecursionError) as error:
        raise _broken(file, msg("its header is not JSON ({error})", error=str(error)[:80])) from error
    if not isinstance(header, dict):
        raise _broken(file, msg("its header is a {kind}, not an object", kind=type(header).__name__))
    entries = [(name, entry) for name, entry in header.items() if name != "__metadata__"]
    spans = [(*_offsets(file, name, entry), name) for name, entry in entries]
    _check_layout(file, spans, None if file_bytes is None else file_bytes - 8 - length)
    found = [_tensor(file, name, entry) for name, entry in entries]
    unknown = tuple(sorted({t.dtype for t in found if t.dtype not in BITS}))
    return TensorHeaders(tuple(found), unknown)


def read_index(data: bytes, *, file: str = "model.safetensors.index.json") -> Mapping[str, str]:
    """Tensor name -> shard file, of an index file."""
    try:
        index = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _broken(file, msg("it is not JSON ({error})", error=str(error)[:80])) from error
    weights = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(weights, dict) or not all(isinstance(v, str) for v in weights.values()):
        raise _broken(file, msg("it has no weight_map of names to files"))
    return {str(k): v for k, v in weights.items()}


def merge_headers(shards: Iterable[TensorHeaders]) -> TensorHeaders:
    """One set of headers from a checkpoint's shards; a name in two shards is an error."""
    found: dict[str, Tensor] = {}
    unknown: set[str] = set()
    for shard in shards:
        unknown.update(shard.unknown_types)
        for tensor in shard.tensors:
            if tensor.name in found:
                raise ModelError(msg("two shards both hold the tensor {name}", name=tensor.name), hint=_HINT)
            found[tensor.name] = tensor
    return TensorHeaders(tuple(found.values()), tuple(sorted(unknown)))


_HINT = msg("Download the file again: a broken or partial download looks like this.")


def _broken(file: str, reason: Message) -> ModelError:
    return ModelError(msg("{file} is not a usable safetensors file: {reason}", file=file, reason=reason), hint=_HINT)


def _offsets(file: str, name: str, entry: Any) -> tuple[int, int]:
    offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(_natural(n) for n in offsets):
        raise _broken(file, msg("tensor {name} has data_offsets {value}", name=name, value=repr(offsets)[:60]))
    if offsets[0] > offsets[1]:
        raise _broken(file, msg("tensor {name} ends before it begins: {value}", name=name, value=repr(offsets)))
    return offsets[0], offsets[1]


def _check_layout(file: str, spans: list[tuple[int, int, str]], body_bytes: int | None) -> None:
    """Tensors lie one after the other without holes (safetensors, src/tensor.rs, Metadata::validate)."""
    end, last = 0, "the header"
    for start, stop, name in sorted(spans):
        if start < end:
            raise _broken(file, msg("tensors {one} and {two} overlap", one=last, two=name))
        if start > end:
            raise _broken(
                file, msg("{n:,} bytes between {one} and {two} belong to nothing", n=start - end, one=last, two=name)
            )
        end, last = stop, name
    if body_bytes is not None and end != body_bytes:
        raise _broken(
            file, msg("its tensors need {need:,} bytes after the header; {have:,} are there", need=end, have=body_bytes)
        )


def _tensor(file: str, name: str, entry: dict[str, Any]) -> Tensor:
    dtype, shape = entry.get("dtype"), entry.get("shape")
    if not isinstance(dtype, str):
        raise _broken(file, msg("tensor {name} has dtype {value}", name=name, value=repr(dtype)[:60]))
    if not isinstance(shape, list) or not all(_natural(n) for n in shape):
        raise _broken(file, msg("tensor {name} has shape {value}", name=name, value=repr(shape)[:60]))
    start, stop = entry["data_offsets"]
    tensor = Tensor(name, dtype, tuple(shape), stop - start)
    bits = BITS.get(dtype)
    if bits is not None and -(-tensor.elements * bits // 8) != tensor.size_bytes:
        wrong = msg(
            "tensor {name} of {dtype} {shape} needs {need:,} bytes; its offsets span {have:,}",
            name=name, dtype=dtype, shape=shape, need=-(-tensor.elements * bits // 8), have=tensor.size_bytes,
        )  # fmt: skip
        raise _broken(file, wrong)
    return tensor


def _natural(n: object) -> bool:
    return isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 1 << 62
