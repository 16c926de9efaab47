"""An answer that was asked for by a JSON schema validates against it."""

from __future__ import annotations

from typing import Literal

import msgspec

from trimtab.bench.criterion import Criterion
from trimtab.bench.inquiry import Inquiry
from trimtab.engine.api import printable, read_delta
from trimtab.messages import msg

SCHEMA = {
    "type": "object",
    "properties": {
        "colour": {"type": "string", "enum": ["red", "white", "blue"]},
        "masts": {"type": "integer", "enum": [1, 2, 3]},
        "afloat": {"type": "boolean"},
        "flags": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}, "maxItems": 3},
    },
    "required": ["colour", "masts", "afloat", "flags"],
    "additionalProperties": False,
}
TOKENS = 256


class Ship(msgspec.Struct, forbid_unknown_fields=True):
    """What SCHEMA describes."""

    colour: Literal["red", "white", "blue"]
    masts: Literal[1, 2, 3]
    afloat: bool
    flags: list[Literal["a", "b", "c"]]


async def judge(run: Inquiry) -> Criterion:
    """One request with `response_format`; the answer is read as what the schema describes."""
    shape = {"type": "json_schema", "json_schema": {"name": "ship", "strict": True, "schema": SCHEMA}}
    body = run.server.body("Describe a ship as JSON.", TOKENS, stream=False) | {"response_format": shape}
    reply = await run.post("/chat/completions" if run.server.chat else "/completions", body)
    if reply.status in (400, 404, 422, 501) and not run.vllm:
        return Criterion("not_applicable", (msg("it refuses response_format: {why}", why=reply.why),))
    delta = read_delta(reply.value)
    if reply.status != 200 or delta is None:
        why = (
            reply.why if reply.status != 200 else msg("the answer is no completion: {text}", text=str(reply.value)[:80])
        )
        return Criterion("failed", (why,), next=(_LOG,))
    text = delta.text.strip()
    measured = {"characters": len(text), "finish_reason": delta.finish_reason}
    try:
        ship = msgspec.json.decode(text, type=Ship)
    except msgspec.DecodeError as error:
        if delta.finish_reason == "length" and text.startswith("{"):
            why = msg("the answer was not over after {tokens} tokens: {text}", tokens=TOKENS, text=printable(text, 80))
            return Criterion("not_measured", (why,), measured)
        why = msg("the answer {text} does not fit the schema: {reason}", text=printable(text, 80), reason=str(error))
        step = msg("The server ignores response_format: use one that holds the model to a schema, as vLLM does.")
        return Criterion("failed", (why,), measured, (step,))
    if len(ship.flags) > 3:
        return Criterion("failed", (msg("{n} flags where the schema allows 3", n=len(ship.flags)),), measured, (_LOG,))
    return Criterion("passed", (msg("validates: {text}", text=printable(text, 100)),), measured)


_LOG = msg("Read the server's log: trimtab doctor LOG.")
