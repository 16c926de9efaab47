"""What a flag means to each generation of vLLM's engine and model runner, in words."""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.flags.spec import FlagSpec
from trimtab.messages import Message, msg


def meanings(spec: FlagSpec, engines: str) -> Iterator[Message]:
    """One sentence on the engine it acts on, and one on each newer part that does not do what it asks.

    `engines` are the generations of the version, the default one first ("V1 V0").
    """
    yield _engine(spec, engines)
    if "V1" in spec.unsupported and engines == "V1":
        yield msg("this version refuses some of its values, or some beside other flags")
    elif "V1" in spec.unsupported:
        yield msg("with it, or with some of its values, vLLM runs V0 in place of V1; VLLM_USE_V1=1 makes it refuse")
    if "V2 runner" in spec.unsupported:
        yield msg(
            "with some of its values vLLM takes the V1 model runner in place of V2; "
            "VLLM_USE_V2_MODEL_RUNNER=1 makes it refuse"
        )


def _engine(spec: FlagSpec, engines: str) -> Message:
    default, _, other = engines.partition(" ")
    if not other:
        if spec.engine is not None and spec.engine != default and default in spec.unsupported:
            return msg("{engine} alone, which this version no longer has", engine=spec.engine)
        if spec.engine is not None and spec.engine != default:
            return msg("{engine} alone, which this version no longer has: without effect", engine=spec.engine)
        return msg("{engine}, the only engine of this version", engine=default)
    if spec.engine is None:
        return msg("V0 and V1; {default} runs by default", default=default)
    if "V1" in spec.unsupported:
        return msg("{engine} alone; {default} runs by default", engine=spec.engine, default=default)
    ignoring = "V0" if spec.engine == "V1" else "V1"
    return msg("{engine} alone; {ignoring} ignores it; {default} runs by default",
               engine=spec.engine, ignoring=ignoring, default=default)  # fmt: skip
