"""Reads quantization_config in each method's own words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from trimtab.facts.keys import Keys
from trimtab.facts.quantisation import UNQUANTISED, Group, Quantisation, Scheme

FP8 = Scheme("fp8", 8, 0, scale_bytes=4)
FP8_ROWS = Scheme("fp8 per channel", 8, -1, scale_bytes=4)
INT8_ROWS = Scheme("int8 per channel", 8, -1, scale_bytes=4)
MXFP4 = Scheme("mxfp4", 4, 32, scale_bytes=1, padded=True)
MXFP8 = Scheme("mxfp8", 8, 32, scale_bytes=1)
NVFP4 = Scheme("nvfp4", 4, 16, scale_bytes=1, extra_bytes=8)
NF4 = Scheme("nf4", 4, 64, scale_bytes=4, stored_scale_bytes=1 + 4 / 256)
"""bitsandbytes: vLLM undoes the double quantisation of the scales when it loads (bitsandbytes_loader.py)."""


def read_quantisation(top: Keys, text: Keys) -> Quantisation | None:
    """The quantisation that a config declares (top level or in its text config), or None.

    A method that is not known here is named in `missing`; its weights then count as 16 bit, an upper bound.
    """
    keys = top.sub("quantization_config", "compression_config") or text.sub("quantization_config", "compression_config")
    if keys is None:
        top.objects("quantization_config", "compression_config")
        return None
    method = keys.text("quant_method").lower().replace("_", "-")
    if not method and keys.has("config_groups"):
        method = "compressed-tensors"
    reader = READERS.get(method)
    if reader is None:
        top.missing.append(f"quantisation method {method or 'without a name'}")
        return Quantisation(method, ())
    found = reader(keys)
    if "fp4" in (top.text("expert_dtype"), keys.text("expert_dtype")):
        found = replace(found, groups=(Group(MXFP4, ("experts",)), *found.groups))
    return found


def _fp8(keys: Keys) -> Quantisation:
    block = keys.integers("weight_block_size")
    scheme = FP8
    if len(block) == 2:
        scheme = Scheme("fp8 block", 8, block=(max(1, block[0]), max(1, block[1])), scale_bytes=4)
    elif keys.text("activation_scheme") == "static":
        scheme = replace(FP8, extra_bytes=4)
    return Quantisation("fp8", (Group(scheme),), _excluded(keys))


def _fbgemm(keys: Keys) -> Quantisation:
    return Quantisation("fbgemm_fp8", (Group(FP8_ROWS),), _excluded(keys))


def _awq(keys: Keys) -> Quantisation:
    bits = keys.integer("bits", "w_bit", low=1, high=8) or 4
    group = _group_size(keys)
    zeros = bits if keys.flag("zero_point", default=True) else 0
    scheme = Scheme(f"awq int{bits}", bits, group, zero_bits=zeros)
    return Quantisation("awq", (Group(scheme),), _excluded(keys))


def _gptq(keys: Keys) -> Quantisation:
    bits = keys.integer("bits", low=1, high=16) or 4
    symmetric, ordered = keys.flag("sym", default=True), keys.flag("desc_act")
    scheme = Scheme(
        f"gptq int{bits}", bits, _group_size(keys), zero_bits=0 if symmetric else bits, stored_zero_bits=bits,
        order_bytes=4 if ordered else 0, stored_order_bytes=4,
    )  # fmt: skip
    excluded = _excluded(keys)
    dynamic = keys.sub("dynamic")
    if dynamic is not None:
        excluded += tuple(f"re:{name[2:]}" for name in dynamic.config if name.startswith("-:"))
    return Quantisation("gptq", (Group(scheme),), excluded, lm_head=keys.flag("lm_head"))


def _auto_round(keys: Keys) -> Quantisation:
    bits = keys.integer("bits", low=1, high=16) or 4
    symmetric = keys.flag("sym", default=True)
    scheme = Scheme(f"auto-round int{bits}", bits, _group_size(keys), zero_bits=0 if symmetric else bits,
                    stored_zero_bits=bits)  # fmt: skip
    extra = keys.sub("extra_config")
    excluded = () if extra is None else tuple(n for n, v in extra.config.items() if _is_16_bit(v))
    return Quantisation("auto-round", (Group(scheme),), excluded)


def _is_16_bit(value: object) -> bool:
    return isinstance(value, Mapping) and value.get("bits") in (16, 32)


def _bitsandbytes(keys: Keys) -> Quantisation:
    excluded = keys.texts("llm_int8_skip_modules")
    if keys.flag("load_in_8bit") or keys.flag("_load_in_8bit"):
        return Quantisation("bitsandbytes", (Group(Scheme("int8", 8, -1, scale_bytes=4)),), excluded)
    return Quantisation("bitsandbytes", (Group(NF4),), excluded)


def _mxfp4(keys: Keys) -> Quantisation:
    return Quantisation("mxfp4", (Group(MXFP4, ("experts",)),), _excluded(keys))


def _modelopt(keys: Keys) -> Quantisation:
    nested = keys.sub("quantization") or keys
    algorithm = nested.text("quant_algo", default="FP8").upper()
    kv_scheme = "fp8" if nested.text("kv_cache_quant_algo").upper() == "FP8" else ""
    layers = nested.sub("quantized_layers")
    if layers is not None:
        groups = tuple(_modelopt_mixed(layers))
        return Quantisation("modelopt_mixed", groups, _excluded(nested), kv_scheme)
    scheme = _MODELOPT.get(algorithm, UNQUANTISED)
    if scheme is UNQUANTISED:
        keys.missing.append(f"modelopt quant_algo {algorithm}")
    method = "modelopt_fp4" if "FP4" in algorithm else "modelopt"
    return Quantisation(method, (Group(scheme),), _excluded(nested), kv_scheme)


_MODELOPT = {
    "FP8": replace(FP8, extra_bytes=4), "FP8_PER_CHANNEL_PER_TOKEN": FP8_ROWS, "NVFP4": NVFP4, "NVFP4_AWQ": NVFP4,
    "W4A16_NVFP4": NVFP4, "MXFP8": MXFP8, "FP8_PB_WO": Scheme("fp8 block", 8, block=(128, 128), scale_bytes=4),
    "W4A8_AWQ": Scheme("int4", 4, 128),
}  # fmt: skip


def _modelopt_mixed(layers: Keys) -> Iterable[Group]:
    """`quantized_layers` names each module: {"quant_algo": ...}; equal schemes are put together."""
    found: dict[Scheme, list[str]] = {}
    for name, value in layers.config.items():
        algorithm = str(value.get("quant_algo", "")).upper() if isinstance(value, Mapping) else ""
        scheme = _MODELOPT.get(algorithm)
        if scheme is None:
            layers.missing.append(f"modelopt quant_algo {algorithm or 'without a name'}")
            continue
        found.setdefault(scheme, []).append(name)
    return (Group(scheme, tuple(names)) for scheme, names in found.items())


def _compressed(keys: Keys) -> Quantisation:
    groups_keys = keys.sub("config_groups")
    groups = []
    for name in groups_keys.config if groups_keys is not None else ():
        group = groups_keys.sub(name) if groups_keys is not None else None
        weights = group.sub("weights") if group is not None else None
        if group is None or weights is None:
            continue
        targets = tuple(t for t in group.texts("targets") if t not in CLASS_TARGETS)
        groups.append(Group(_compressed_scheme(weights, group.text("format") or keys.text("format")), targets))
    kv = keys.sub("kv_cache_scheme")
    return Quantisation(
        "compressed-tensors", tuple(groups), keys.texts("ignore"), "fp8" if kv is not None else "",
        lm_head=any("lm_head" in t for g in groups for t in g.targets),
    )  # fmt: skip


CLASS_TARGETS = frozenset({"Linear", "FusedMoE", "MoEGate", "RoutedExperts"})


def _compressed_scheme(weights: Keys, fmt: str) -> Scheme:
    bits = weights.integer("num_bits", low=1, high=16) or 8
    kind, strategy = weights.text("type", default="int"), weights.text("strategy", default="tensor")
    group = weights.integer("group_size") if weights.config.get("group_size") != -1 else None
    if kind == "float" and bits == 4:
        return NVFP4 if group == 16 or "nvfp4" in fmt else replace(MXFP4, padded=False)
    if strategy == "block":
        block = weights.integers("block_structure")
        if len(block) == 2:
            return Scheme(f"{kind}{bits} block", bits, block=(max(1, block[0]), max(1, block[1])), scale_bytes=4)
    zeros = 0 if weights.flag("symmetric", default=True) else bits
    if strategy in ("group", "tensor_group") and group:
        return Scheme(f"{kind}{bits} group", bits, group, zero_bits=zeros)
    if strategy == "channel":
        return Scheme(f"{kind}{bits} per channel", bits, -1, scale_bytes=4 if bits == 8 else 2, zero_bits=zeros)
    return Scheme(f"{kind}{bits} per tensor", bits, 0, scale_bytes=4)


def _quark(keys: Keys) -> Quantisation:
    whole = keys.sub("global_quant_config")
    weight = whole.sub("weight") if whole is not None else None
    dtype = weight.text("dtype") if weight is not None else ""
    schemes = {"fp8_e4m3": FP8, "fp4": replace(MXFP4, padded=False), "int8": INT8_ROWS, "int4": Scheme("int4", 4, 128)}
    if dtype not in schemes:
        keys.missing.append(f"quark weight dtype {dtype or 'without a name'}")
    return Quantisation("quark", (Group(schemes.get(dtype, UNQUANTISED)),), keys.texts("exclude"))


def _torchao(keys: Keys) -> Quantisation:
    keys.missing.append("torchao's quant_type (its packing is a pickled object)")
    return Quantisation("torchao", ())


def _gguf(keys: Keys) -> Quantisation:
    """Each tensor has its own type, which `gguf_model` lays over the weights; `bits` is a mean for all of them."""
    bits = keys.number("bits", high=64)
    if bits is None:
        return Quantisation("gguf", ())
    return Quantisation("gguf", (Group(Scheme("gguf", bits, scale_bytes=0)),), lm_head=True)


def _experts_int8(keys: Keys) -> Quantisation:
    return Quantisation("experts_int8", (Group(INT8_ROWS, ("experts",)),))


def _group_size(keys: Keys) -> int:
    size = keys.config.get("group_size", keys.config.get("q_group_size", 128))
    return -1 if size == -1 else keys.integer("group_size", "q_group_size", low=1) or 128


def _excluded(keys: Keys) -> tuple[str, ...]:
    names = ("modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules")
    return tuple(name for key in names for name in keys.texts(key))


READERS: dict[str, Callable[[Keys], Quantisation]] = {
    "fp8": _fp8, "fbgemm-fp8": _fbgemm, "awq": _awq, "gptq": _gptq, "auto-round": _auto_round, "autoround": _auto_round,
    "intel/auto-round": _auto_round, "bitsandbytes": _bitsandbytes, "mxfp4": _mxfp4, "modelopt": _modelopt,
    "modelopt-fp4": _modelopt, "modelopt-mixed": _modelopt, "compressed-tensors": _compressed, "quark": _quark,
    "torchao": _torchao, "gguf": _gguf, "experts-int8": _experts_int8, "deepseek-v4-fp8": _fp8,
}  # fmt: skip
