"""ModelFacts: what a model is, read from its config.json, its tensor headers and its quantisation; no I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property

import msgspec
from msgspec.structs import replace

from trimtab.errors import ModelError
from trimtab.facts.architectures.defaults import defaults_for
from trimtab.facts.architectures.registry import architecture_of, build
from trimtab.facts.architectures.shape import Shape
from trimtab.facts.keys import BESIDE, Keys
from trimtab.facts.layer_types import check_layer_types
from trimtab.facts.layers import Draft, LayerFacts, Tower
from trimtab.facts.overlay import pack_head, pack_layers
from trimtab.facts.packing import read_quantisation
from trimtab.facts.positions import positions, rope_scaling, shortest_positions
from trimtab.facts.quantisation import Quantisation
from trimtab.facts.rotary import rotary_tables
from trimtab.facts.tensors import TensorHeaders
from trimtab.facts.weights import Part, Weight
from trimtab.messages import msg


class Bound(msgspec.Struct, frozen=True):
    """A limit that is certain although the architecture is not known."""

    name: str
    low: float | None
    high: float | None
    unit: str
    reason: str


class ModelFacts(msgspec.Struct, frozen=True, dict=True):
    """A model's facts. Sizes are of the whole model; `weights.Weight.rank_tensors` and `layers.*` split them.

    `embedding` is on the first pipeline stage, `head` (final norm, output matrix) on the last; with
    `tied_embeddings` the last stage of several holds its own copy of the embedding.
    `missing` names what could not be read: then `layers` may be empty and only `bounds` hold.
    `assumed` lists each default that neither the config nor its architecture's code settles.
    """

    architecture: str
    model_type: str
    dtype: str
    hidden_size: int
    intermediate_size: int
    vocab_size: int
    heads: int
    kv_heads: int
    head_dim: int
    v_head_dim: int
    max_positions: int
    rope_scaling: Mapping[str, object]
    tied_embeddings: bool
    embedding: tuple[Weight, ...]
    layers: tuple[LayerFacts, ...]
    head: tuple[Weight, ...]
    towers: tuple[Tower, ...] = ()
    drafts: tuple[Draft, ...] = ()
    quantisation: Quantisation | None = None
    rotary_tables: tuple[tuple[int, int], ...] = ()
    """Positions and width of each cos/sin table that vLLM builds once per rank, in the model's dtype."""
    task: str = "generate"
    """"generate", or "embed" for encoders, which cache nothing."""
    missing: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    bounds: tuple[Bound, ...] = ()
    max_new_tokens: int | None = None
    """generation_config.json's limit on an answer, which vLLM holds every request to (--generation-config auto)."""
    stored_bytes_measured: int | None = None
    """Bytes of all tensors in the checkpoint's headers, when they were given."""
    notes: tuple[str, ...] = ()
    chat_template: bool | None = None
    """Whether the model's files hold a chat template; None where nobody looked."""
    base_model: bool = False
    """Whether it is known to be trained on text alone, not on chats."""
    own_code: bool = False
    """Whether the config names Python code that the checkpoint brings (`auto_map`)."""
    shortest_positions: int = 0
    """The smallest of the config's position limits; `model_max_length` counts above them from vLLM 0.4 on."""

    @property
    def num_layers(self) -> int:
        return len(self.layers)

    @property
    def decoder_known(self) -> bool:
        """Whether heads, layers and experts are read, whatever is missing of the parts beside them."""
        return all(name.startswith(BESIDE) for name in self.missing)

    @property
    def element_bytes(self) -> int:
        """Bytes of one number in the model's dtype (bfloat16, float16: 2; float32: 4)."""
        return 4 if self.dtype == "float32" else 2

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Every weight of the checkpoint but drafts', in order of the model."""
        inner = [w for layer in self.layers for w in layer.weights]
        towers = [w for tower in self.towers for w in tower.weights]
        return (*self.embedding, *inner, *self.head, *towers)

    @cached_property
    def parameters(self) -> int:
        return sum(w.parameters for w in self.weights)

    @cached_property
    def stored_bytes(self) -> int:
        """Bytes of the weights as the checkpoint stores them (drafts not counted)."""
        stored = sum(w.stored_bytes for w in self.weights)
        return stored * 2 if self.dtype == "float32" and self.quantisation is None else stored

    @cached_property
    def parameters_by_part(self) -> Mapping[Part, int]:
        found: dict[Part, int] = {}
        for w in self.weights:
            found[w.part] = found.get(w.part, 0) + w.parameters
        return found

    @cached_property
    def bytes_by_part(self) -> Mapping[Part, int]:
        found: dict[Part, int] = {}
        for w in self.weights:
            found[w.part] = found.get(w.part, 0) + w.stored_bytes
        return found

    def kv_elements_per_token(self, *, beyond_window: bool = False) -> int:
        """Cached numbers per token over all layers; `beyond_window`: only of layers that see the whole context."""
        total = 0
        for layer in self.layers:
            attention = layer.attention
            if attention is None or attention.cross:
                continue
            if beyond_window and (attention.window or attention.chunk):
                continue
            total += attention.kv_elements()
        return total


def read_model(
    config: object, *, tensors: TensorHeaders | None = None, generation_config: Mapping[str, object] | None = None
) -> ModelFacts:
    """Facts of the model that this config.json describes. ModelError: the config is unusable as it stands.

    With `tensors` (safetensors headers) the stored bytes are exact whatever the architecture.
    An architecture that is not known is read as a plain decoder, and `missing` and `bounds` say so.
    """
    top = Keys(config)
    text = _text_keys(top)
    architecture = architecture_of(top)
    outline = build(top, text, architecture)
    shape = outline.shape
    check_layer_types(text, shape.layers)
    rope = rope_scaling(text)
    quantisation = read_quantisation(top, text)
    layers, head, drafts, embedding = outline.layers, outline.head, outline.drafts, outline.embedding
    if quantisation is not None:
        layers, head = pack_layers(layers, quantisation), pack_head(head, quantisation)
        embedding = pack_head(embedding, quantisation)
        drafts = tuple(replace(d, layers=pack_layers(d.layers, quantisation, len(layers))) for d in drafts)
    attention = next((layer.attention for layer in layers if layer.attention is not None), None)
    return ModelFacts(
        architecture=architecture,
        model_type=top.text("model_type"),
        dtype=_dtype(top, text),
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        vocab_size=shape.vocab,
        heads=shape.heads,
        kv_heads=attention.kv_heads if attention else 0,
        head_dim=attention.head_dim if attention else 0,
        v_head_dim=attention.v_head_dim if attention else 0,
        max_positions=positions(text, rope),
        rope_scaling=rope,
        tied_embeddings=outline.tied,
        embedding=embedding,
        layers=layers,
        head=head,
        towers=outline.towers,
        drafts=drafts,
        quantisation=quantisation,
        task=outline.task,
        bounds=_bounds(top, shape, tensors) if top.missing else (),
        rotary_tables=rotary_tables(text, rope, layers) if outline.rotary else (),
        missing=tuple(dict.fromkeys(top.missing)),
        assumed=tuple(dict.fromkeys(top.assumed)),
        max_new_tokens=Keys(generation_config or {}).integer("max_new_tokens", low=1),
        stored_bytes_measured=tensors.size_bytes if tensors is not None else None,
        notes=outline.notes,
        own_code=top.has("auto_map"),
        shortest_positions=shortest_positions(text),
    )


def _bounds(top: Keys, shape: Shape, tensors: TensorHeaders | None) -> tuple[Bound, ...]:
    """What stays certain although something is missing."""
    found = []
    if tensors is not None:
        size = float(tensors.size_bytes)
        found.append(Bound("stored_bytes", size, size, "bytes", "sum over the checkpoint's tensor headers"))
    elif shape.vocab and shape.hidden:
        low = shape.vocab * shape.hidden / 2
        found.append(Bound("stored_bytes", low, None, "bytes", "its embedding alone, even at 4 bits a number"))
    if shape.layers and shape.heads and shape.head_dim:
        high = 2 * shape.layers * shape.heads * shape.head_dim
        reason = "keys and values of every head in every layer, none shared, none windowed"
        found.append(Bound("kv_elements_per_token", 0, high, "numbers", reason))
    return tuple(found)


_NESTED = ("text_config", "llm_config", "language_config", "language_model_config", "text_model_config")


def _text_keys(top: Keys) -> Keys:
    """The language model's own config: nested in multimodal ones."""
    thinker = top.sub("thinker_config")
    if thinker is not None:
        return _text_keys(thinker)
    top.objects(*_NESTED)
    nested = top.sub(*_NESTED)
    if nested is None:
        return top.with_defaults(defaults_for(top.text("model_type")))
    model_type = nested.text("model_type") or top.text("model_type") + "_text"
    defaults = defaults_for(model_type, inner=bool(nested.text("model_type")))
    if top.has("tie_word_embeddings"):  # what the file says itself is truer than the inner config class's default
        defaults = {**defaults, "tie_word_embeddings": top.flag("tie_word_embeddings")}
    return nested.with_defaults(defaults)


_OTHER_DTYPES = re.compile(
    r"auto|half|float|double|float64|b?f(p|loat)?(8|16|32|4)([_-]?e\d.*)?|u?int[48]|mxfp[48]|nvfp4", re.IGNORECASE
)
"""Names of dtypes that a packed checkpoint may give; vLLM serves those in 16 bit."""


def _dtype(top: Keys, text: Keys) -> str:
    """The dtype that vLLM serves in under --dtype auto, which is the checkpoint's but float16 for float32."""
    name = (text.text("torch_dtype", "dtype") or top.text("torch_dtype", "dtype")).removeprefix("torch.")
    if name in ("bfloat16", "float16", "float32"):
        return name
    if name and not _OTHER_DTYPES.fullmatch(name):
        raise ModelError(msg("the model's config has {name} = {value}", name="torch_dtype", value=repr(name)[:80]))
    top.assumed.append("dtype bfloat16")
    return "bfloat16"
