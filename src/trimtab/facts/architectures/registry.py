"""Which builder reads which architecture, and what is said of one that none reads."""

from __future__ import annotations

from trimtab.facts.architectures.decoder import Outline, build_decoder
from trimtab.facts.architectures.traits import DECODERS, LLAMA
from trimtab.facts.keys import Keys


def architecture_of(top: Keys) -> str:
    names = top.texts("architectures")
    if names:
        return names[0]
    top.missing.append("architectures")
    return ""


def build(top: Keys, text: Keys, architecture: str) -> Outline:
    """The model's body; an unknown architecture is read as a plain decoder and named in `missing`."""
    traits = DECODERS.get(architecture)
    if traits is None:
        top.missing.append(f"architecture {architecture}")
        traits = LLAMA
    return build_decoder(text, traits)
