"""Finds a model of the catalogue by its hub id: any case, with or without the organisation, quantised variants too."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from trimtab import shipped
from trimtab.errors import ModelError
from trimtab.facts.catalogue import FAMILIES
from trimtab.facts.catalogue.tunes import body_of
from trimtab.facts.model import ModelFacts, read_model
from trimtab.messages import msg


class Entry(msgspec.Struct, frozen=True, dict=True, rename={"written": "config"}):
    """One model: its ids (the first is the usual one), config keys as `written`, and where they are from.

    `parameters`: the publisher's count, where known; a check on the reader. `without_template`: those of the ids whose
    repository holds no chat template (public reports; base models of families known for it); the others are taken to
    hold one.
    """

    ids: tuple[str, ...]
    written: msgspec.Raw
    source: str
    confidence: Literal["high", "medium", "low"]
    parameters: int | None = None
    without_template: tuple[str, ...] = ()

    @cached_property
    def config(self) -> dict[str, Any]:
        """The keys of its config.json; read when somebody asks, since a look-up wants one of all models."""
        return msgspec.json.decode(self.written, type=dict[str, Any])


class _Family(msgspec.Struct):
    family: str
    models: list[Entry]


class Found(msgspec.Struct, frozen=True):
    """A look-up's result. `variant` is the quantisation that the id's ending names, "" when it is the model itself."""

    entry: Entry
    id: str
    variant: str
    config: Mapping[str, Any]
    assumed: tuple[str, ...]
    tune: bool = False
    """Whether it is a fine-tune known by its name alone: of its chat template nothing is known."""

    def facts(self) -> ModelFacts:
        """The model's facts; what the look-up takes on trust is among their `assumed`."""
        facts = read_model(self.config)
        missing = self.id in self.entry.without_template
        return replace(
            facts,
            assumed=(*facts.assumed, *self.assumed),
            chat_template=None if self.tune else not missing,
            base_model=missing and not self.tune and not _CHATS.search(self.id),
        )


_CHATS = re.compile(r"chat|vicuna|instruct|-it\b|DeepSeek-V3|wizard|guanaco|glm|Seed-X", re.IGNORECASE)
"""Of the models without a template those that are trained on chats all the same."""


@cache
def entries() -> tuple[Entry, ...]:
    """The whole catalogue, in order of its families' names."""
    files = (shipped.read("trimtab.facts.catalogue", f"{family}.json") for family in FAMILIES)
    return tuple(entry for file in files for entry in msgspec.json.decode(file, type=_Family).models)


@cache
def _by_id() -> Mapping[str, tuple[Entry, str]]:
    found: dict[str, tuple[Entry, str]] = {}
    for entry in entries():
        for model_id in entry.ids:
            found[model_id.lower()] = (entry, model_id)
            found.setdefault(model_id.lower().rpartition("/")[2], (entry, model_id))
    return found


def find_model(model_id: str) -> Found:
    """The catalogue's model for a hub id. ModelError names the nearest ids when there is none."""
    wanted = _wanted(model_id)
    for name in (wanted, wanted.rpartition("/")[2]):
        if name in _by_id():
            entry, real = _by_id()[name]
            return Found(entry, real, "", entry.config, _doubts(entry))
    plain, scheme = _without_variant(wanted.rpartition("/")[2])
    if scheme is not None and plain not in _by_id():
        plain = _without_variant(plain)[0]
    if scheme is not None and plain in _by_id():
        entry, real = _by_id()[plain]
        return _variant(entry, real, scheme)
    tune = body_of(wanted.rpartition("/")[2])
    if tune is not None:
        return _tune(*_by_id()[tune.lower()], scheme)
    raise _unknown(model_id, plain)


def plain_names(model_id: str) -> tuple[str, ...]:
    """Under which names (in lower case) a model may be known: whole, without organisation, without quantisation."""
    wanted = _wanted(model_id)
    last = wanted.rpartition("/")[2]
    once, _ = _without_variant(last)
    return tuple(dict.fromkeys((wanted, last, once, _without_variant(once)[0])))


def _wanted(model_id: str) -> str:
    """The id in lower case without remarks; a placeholder "<Qwen3-8B>" names what stands in its brackets."""
    wanted = re.sub(r"\([^)]*\)|\b(build|checkpoint)\b", " ", model_id.lower()).strip().strip("<>").strip("/ ")
    return re.sub(r"\s+", "-", wanted)


def nearest_ids(model_id: str, count: int = 3) -> tuple[str, ...]:
    """The catalogue's ids most like this one."""
    plain, _ = _without_variant(model_id.strip().lower().rpartition("/")[2])
    near = difflib.get_close_matches(plain, list(_by_id()), n=count * 2, cutoff=0.6)
    return tuple(dict.fromkeys(_by_id()[n][1] for n in near))[:count]


_FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic"}
_ROWS = {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True}


def _groups(weights: dict[str, Any]) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": weights}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}, "ignore": ["lm_head"]}


VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    (r"unsloth-bnb-4bit|bnb-4bit|bnb4bit|nf4", {"quant_method": "bitsandbytes", "load_in_4bit": True}),
    (r"awq(-?(int)?4(bit)?)?(-?gs128)?|int4-awq|4bit-awq|4-bit", {"quant_method": "awq", "bits": 4, "group_size": 128,
                                                          "zero_point": True}),
    (r"gptq-?(int)?8(bit)?", {"quant_method": "gptq", "bits": 8, "group_size": 128, "sym": True, "desc_act": False}),
    (r"gptq(-?(int)?4(bit)?)?|autoround-gptq-4bit-a?sym|autoround-int4|int4-autoround|autoround|gptqmodel-4bit",
     {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True, "desc_act": False}),
    (r"fp8-dynamic|fp8-w8a8|fp8-kv|w8a8-fp8", _groups(_ROWS)),
    (r"fp8", _FP8),
    (r"nvfp4a?(16)?|fp4", {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16}),
    (r"quantized\.w8a8|w8a8|int8|w8a8-int8", _groups({**_ROWS, "type": "int"})),
    (r"quantized\.w8a16|w8a16", _groups({**_ROWS, "type": "int"})),
    (r"quantized\.w4a16|w4a16(-g128)?|int4", _groups({"num_bits": 4, "type": "int", "strategy": "group",
                                                      "group_size": 128, "symmetric": True})),
)  # fmt: skip
"""What the end of an id says of its quantisation: how its publishers usually make such a variant."""
GGUF_BITS = {
    "q2_k": 3.1593, "q3_k_s": 3.6429, "q3_k_l": 4.2979, "q4_0": 4.5, "q4_k_s": 4.6672,
    "q4_k_m": 4.8944,
    "q5_0": 5.5, "q5_k_s": 5.5704, "q5_k_m": 5.7036, "q6_k": 6.5633, "q8_0": 8.5,
}  # fmt: skip
"""Mean bits a weight of llama.cpp's mixes (its tools/quantize/README.md, Llama-3.1-8B)."""
_ENDINGS = tuple((re.compile(rf"[-_.](?:{pattern})$"), config) for pattern, config in VARIANTS)


def _without_variant(name: str) -> tuple[str, dict[str, Any] | None]:
    name = re.sub(r"[-_](gguf|hf|bf16|fp16|original|lm-?head)$", "", name)
    gguf = re.search(r"[-_.](q\d_(?:k(?:_[sml])?|[01]))$", name)
    if gguf is not None and gguf.group(1) in GGUF_BITS:
        return name[: gguf.start()], {"quant_method": "gguf", "bits": GGUF_BITS[gguf.group(1)]}
    for ending, config in _ENDINGS:
        found = ending.search(name)
        if found is not None:
            return name[: found.start()], config
    return name, None


def _variant(entry: Entry, real: str, scheme: dict[str, Any]) -> Found:
    config = {**entry.config, "quantization_config": _for_model(entry, scheme)}
    if "torch_dtype" in config and scheme.get("quant_method") in ("awq", "gptq"):
        config["torch_dtype"] = "float16"
    method = str(scheme["quant_method"])
    doubt = f"quantisation {method} as its publishers usually do it, read off the id"
    return Found(entry, real, method, config, (*_doubts(entry), doubt))


def _tune(entry: Entry, real: str, scheme: dict[str, Any] | None) -> Found:
    """The body of a catalogued model under another name."""
    found = (
        _variant(entry, real, scheme) if scheme is not None else Found(entry, real, "", entry.config, _doubts(entry))
    )
    return replace(found, assumed=(*found.assumed, f"the body of {real}, read off the name"), tune=True)


def _for_model(entry: Entry, scheme: dict[str, Any]) -> dict[str, Any]:
    """Qwen's, DeepSeek's and MiniMax's own FP8 variants have scales per block of 128 x 128."""
    if scheme is _FP8 and entry.ids[0].split("/")[0] in ("Qwen", "deepseek-ai", "MiniMaxAI"):
        return {**scheme, "weight_block_size": [128, 128]}
    return scheme


def _doubts(entry: Entry) -> tuple[str, ...]:
    return () if entry.confidence == "high" else (f"{entry.confidence} confidence in its facts: {entry.source}",)


def _unknown(model_id: str, plain: str) -> ModelError:
    near = nearest_ids(plain)
    if near:
        hint = msg("Nearest in the catalogue: {names}. Or give the model's directory.", names=", ".join(near))
    else:
        hint = msg("Give the model's directory, or fetch its config.json.")
    return ModelError(msg("the catalogue has no model {name}", name=repr(model_id)), hint=hint)
