"""Tools are called as clients need it: by name, because one is required, and by the model's own choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from trimtab.bench.criterion import Criterion
from trimtab.bench.inquiry import Inquiry, Reply
from trimtab.engine.api import DONE, EventStream, decode, printable
from trimtab.messages import Message, msg

NAME = "set_heading"
PARAMETERS = {
    "type": "object",
    "properties": {
        "direction": {"type": "string", "enum": ["north", "east", "south", "west"]},
        "engine": {"type": "boolean"},
    },
    "required": ["direction", "engine"],
    "additionalProperties": False,
}
PROMPT = "Set the heading of the ship to north, with its engine on. Use the tool."
TOKENS = 128


class Arguments(msgspec.Struct, forbid_unknown_fields=True):
    """What PARAMETERS describes."""

    direction: Literal["north", "east", "south", "west"]
    engine: bool


async def judge(run: Inquiry) -> Criterion:
    """A named tool, a required one, a streamed one, and `auto`."""
    if not run.server.chat:
        return Criterion("not_applicable", (msg("tools need /chat/completions, which this server does not answer"),))
    named = await _ask(run, {"type": "function", "function": {"name": NAME}})
    if named.status in (400, 404, 422, 501) and not run.vllm:
        return Criterion("not_applicable", (msg("it refuses tools: {why}", why=named.why),))
    wrong: list[Message] = []
    said: list[Message] = []
    measured: dict[str, object] = {}
    for kind, reply in (("named", named), ("required", await _ask(run, "required"))):
        fault = _fault(reply)
        measured[kind] = fault is None
        (said if fault is None else wrong).append(
            msg("{kind}: called with valid arguments", kind=kind)
            if fault is None
            else msg("{kind}: {fault}", kind=kind, fault=fault)
        )
    streamed = await _streamed(run)
    measured["streamed"] = streamed is None
    if streamed is not None:
        wrong.append(msg("{kind}: {fault}", kind="streamed", fault=streamed))
    auto = await _ask(run, "auto")
    measured["auto"], told, step = _auto(auto)
    if measured["auto"] is False:
        wrong.append(told)
    else:
        said.append(told)
    steps = [step] if step is not None else []
    if wrong:
        steps.append(msg("Compare parser and chat template with the model's own: trimtab lint names the right parser."))
        return Criterion("failed", (*wrong, *said), measured, tuple(steps))
    return Criterion("passed", tuple(said), measured, tuple(steps))


def _body(run: Inquiry, choice: Any) -> dict[str, Any]:
    # without `strict` vLLM with a parser holds the model to a call, not to the schema of its arguments (0.32:
    # tool_parsers/structural_tag_registry.py)
    about = "Set the heading of the ship."
    tool = {"name": NAME, "description": about, "parameters": PARAMETERS, "strict": True}
    return run.server.body(PROMPT, TOKENS, stream=False) | {
        "tools": [{"type": "function", "function": tool}], "tool_choice": choice,
    }  # fmt: skip


async def _ask(run: Inquiry, choice: Any) -> Reply:
    return await run.post("/chat/completions", _body(run, choice))


def _message(reply: Reply) -> Mapping[str, Any] | None:
    """The first choice, when the reply is a chat completion."""
    choices = reply.value.get("choices") if isinstance(reply.value, Mapping) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) and isinstance(first.get("message"), Mapping) else None


def _fault(reply: Reply) -> Message | None:
    """What is wrong with an answer that must hold a call; None when nothing is."""
    if reply.status != 200:
        return reply.why
    choice = _message(reply)
    if choice is None:
        return msg("the answer is no completion: {text}", text=printable(str(reply.value)))
    calls = choice["message"].get("tool_calls")
    if not isinstance(calls, list) or not calls:
        return msg("no tool was called: {text}", text=printable(str(choice["message"].get("content"))))
    return _call_fault(calls[0])


def _call_fault(call: Any) -> Message | None:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or function.get("name") != NAME:
        return msg("a tool was called that nobody offered: {text}", text=printable(str(function)))
    arguments = function.get("arguments")
    try:
        msgspec.json.decode(str(arguments), type=Arguments)
    except msgspec.DecodeError as error:
        return msg("the arguments {text} do not fit: {reason}", text=printable(str(arguments)), reason=str(error))
    return None


async def _streamed(run: Inquiry) -> Message | None:
    """The named call once more, put together from the pieces of a stream."""
    choice = {"type": "function", "function": {"name": NAME}}
    reply = await run.read("/chat/completions", _body(run, choice) | {"stream": True})
    if isinstance(reply, Reply):
        return reply.why
    name, arguments = "", ""
    for event in EventStream().feed(reply):
        value = decode(event.data) if event.data != DONE else None
        for part in _parts(value):
            name += part.get("name") or ""
            arguments += part.get("arguments") or ""
    if not name:
        return msg("no tool was called: {text}", text=printable(reply.decode("utf-8", "replace")))
    return _call_fault({"function": {"name": name, "arguments": arguments}})


def _parts(value: Any) -> list[Mapping[str, Any]]:
    choices = value.get("choices") if isinstance(value, Mapping) else None
    found: list[Mapping[str, Any]] = []
    for choice in choices if isinstance(choices, list) else []:
        delta = choice.get("delta") if isinstance(choice, Mapping) else None
        calls = delta.get("tool_calls") if isinstance(delta, Mapping) else None
        for call in calls if isinstance(calls, list) else []:
            if isinstance(call, Mapping) and isinstance(call.get("function"), Mapping):
                found.append(call["function"])
    return found


_FLAGS = msg(
    "For tool_choice auto start vLLM with --enable-auto-tool-choice --tool-call-parser NAME: trimtab plan MODEL."
)


def _auto(reply: Reply) -> tuple[bool | None, Message, Message | None]:
    """True: called; None: the server has no parser, or the model chose not to; False: something broke."""
    text = reply.fault.message if reply.fault is not None else ""
    if "tool-call-parser" in text or "auto-tool-choice" in text:
        return None, msg("auto: not offered, --enable-auto-tool-choice and --tool-call-parser are missing"), _FLAGS
    if reply.status != 200:
        return False, msg("{kind}: {fault}", kind="auto", fault=reply.why), None
    choice = _message(reply)
    if choice is None:
        return False, msg("{kind}: {fault}", kind="auto", fault=msg("no completion")), None
    calls = choice["message"].get("tool_calls")
    if not calls:
        content = printable(str(choice["message"].get("content")), 80)
        if "tool_call" in content or '"name"' in content:
            step = msg("A call stands in the text: the parser does not read this model's format.")
            return False, msg("auto: a call was left in the text: {text}", text=content), step
        return None, msg("auto: accepted; the model chose to answer in words: {text}", text=content), None
    function = calls[0].get("function") if isinstance(calls[0], Mapping) else None
    if not isinstance(function, Mapping) or decode(str(function.get("arguments"))) is None:
        return False, msg("auto: the call cannot be read: {text}", text=printable(str(calls[0]))), None
    return True, msg("auto: called {name}", name=printable(str(function.get("name")), 40)), None
