"""The caller speaks OpenAI chat completions, the back end Anthropic messages."""

from __future__ import annotations

import re
from typing import Any

from trimtab.gateway.routes import Stream
from trimtab.gateway.translate import chat, messages
from trimtab.gateway.translate.from_chat import Way, tells_usage
from trimtab.gateway.translate.messages_as_chat import OBJECT, MessagesAsChat, completion
from trimtab.gateway.translate.translation import object_of, read_answer, required, unsupported

MAX_TOKENS = 4096  # Anthropic wants a number where chat has none; every model of theirs takes this one
# Extensions that vLLM's /v1/messages names as its chat completions do, and Anthropic's own top_k.
KEPT = frozenset(
    {"top_k", "cache_salt", "chat_template_kwargs", "kv_transfer_params", "ec_transfer_params", "vllm_xargs",
     "watermarking"}
)  # fmt: skip
# Hints for sampling, speed and accounting that Anthropic has no word for.
DROPPED = frozenset(
    {"frequency_penalty", "presence_penalty", "repetition_penalty", "min_p", "seed", "user", "metadata", "store",
     "service_tier", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "safety_identifier",
     "prediction", "top_logprobs", "include_reasoning"}
)  # fmt: skip
_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")
_OBJECT_TOOL = {
    "name": OBJECT, "description": "Give the answer: its input is the JSON object that was asked for.",
    "input_schema": {"type": "object"},
}  # fmt: skip


def _asked(asked: chat.Request) -> dict[str, Any]:
    turns = Turns(asked.messages)
    told: dict[str, Any] = {
        "model": asked.model, "messages": turns.out, "system": turns.system(), "max_tokens": _max_tokens(asked),
        "stop_sequences": [asked.stop] if isinstance(asked.stop, str) else asked.stop or None,
        "temperature": asked.temperature, "top_p": asked.top_p, "stream": asked.stream,
    }  # fmt: skip
    config: dict[str, Any] = {}
    if asked.reasoning_effort == "none":
        told["thinking"] = {"type": "disabled"}
    elif asked.reasoning_effort is not None:
        config["effort"] = "low" if asked.reasoning_effort == "minimal" else asked.reasoning_effort
    form = asked.response_format
    if form is not None and form.type not in ("text", "json_object"):
        if form.type != "json_schema" or form.json_schema is None or form.json_schema.schema is None:
            raise unsupported(
                "response_format", f"{form.type} is neither json_object nor a json_schema with its schema"
            )
        config["format"] = {"type": "json_schema", "schema": form.json_schema.schema}
    told["output_config"] = config or None
    told.update(_tools(asked))
    if wants_object(asked):
        told["tools"] = [*told.get("tools", []), _OBJECT_TOOL]
        free = asked.tools and asked.tool_choice != "none"
        told["tool_choice"] = {"type": "any"} if free else {"type": "tool", "name": OBJECT}
    return {name: value for name, value in told.items() if value is not None}


def wants_object(asked: chat.Request) -> bool:
    """Whether any JSON object is asked for, which Anthropic has no word for; a call that must be made goes before."""
    form = asked.response_format
    return form is not None and form.type == "json_object" and asked.tool_choice in (None, "auto", "none")


def _max_tokens(asked: chat.Request) -> int:
    if asked.max_completion_tokens is not None:
        return asked.max_completion_tokens
    return asked.max_tokens if asked.max_tokens is not None else MAX_TOKENS


# tools


def _tools(asked: chat.Request) -> dict[str, Any]:
    tools, choice = asked.tools or [], asked.tool_choice
    if isinstance(choice, chat.AllowedChoice):
        allowed = {tool.function.name for tool in choice.allowed_tools.tools}
        tools = [tool for tool in tools if tool.function.name in allowed]
        choice = choice.allowed_tools.mode
    if not tools:
        return {}
    found: dict[str, Any] = {"tools": [_tool(tool.function) for tool in tools]}
    picked: dict[str, Any] = _choice(choice) if choice is not None else {"type": "auto"}
    if asked.parallel_tool_calls is False and picked["type"] != "none":
        picked = {**picked, "disable_parallel_tool_use": True}
    if choice is not None or len(picked) > 1:
        found["tool_choice"] = picked
    return found


def _tool(function: chat.Function) -> dict[str, Any]:
    schema = {"type": "object", **(function.parameters or {})}
    found: dict[str, Any] = {"name": function.name, "input_schema": schema}
    if function.description is not None:
        found["description"] = function.description
    if function.strict:
        found["strict"] = True
    return found


def _choice(choice: str | chat.NamedChoice) -> dict[str, Any]:
    if isinstance(choice, chat.NamedChoice):
        return {"type": "tool", "name": choice.function.name}
    if choice not in ("auto", "none", "required"):
        raise required("tool_choice", "it has to be none, auto, required or a function")
    return {"type": "any" if choice == "required" else choice}


# messages


class Turns:
    """Turns by turns of user and assistant; instructions are taken out of them, wherever they stand."""

    def __init__(self, asked: list[chat.Message]) -> None:
        self.out: list[dict[str, Any]] = []
        self._system: list[str] = []
        for at, message in enumerate(asked):
            where = f"messages[{at}]"
            if isinstance(message, chat.System | chat.Developer):
                text = message.content
                self._system.append(text if isinstance(text, str) else "".join(part.text for part in text))
            elif isinstance(message, chat.Assistant):
                self._add("assistant", _assistant(message, where))
            elif isinstance(message, chat.ToolMessage):
                self._add("user", [_tool_result(message, where)])
            else:
                self._add("user", _blocks(message.content, where))
        for turn in self.out:
            if len(turn["content"]) == 1 and turn["content"][0]["type"] == "text":
                turn["content"] = turn["content"][0]["text"]

    def system(self) -> str | list[dict[str, Any]] | None:
        """The instructions."""
        texts = [text for text in self._system if text]
        if len(texts) < 2:
            return texts[0] if texts else None
        return [{"type": "text", "text": text} for text in texts]

    def _add(self, role: str, blocks: list[dict[str, Any]]) -> None:
        if self.out and self.out[-1]["role"] == role:
            self.out[-1]["content"] += blocks
        else:
            self.out.append({"role": role, "content": blocks})


def _assistant(message: chat.Assistant, where: str) -> list[dict[str, Any]]:
    """Its reasoning is left out: Anthropic takes back only what bears its own signature, which chat cannot carry."""
    blocks = _blocks(message.content or "", where)
    if message.refusal:
        blocks.append({"type": "text", "text": message.refusal})
    for at, call in enumerate(message.tool_calls or []):
        arguments = object_of(call.function.arguments or "{}")
        if arguments is None:
            raise required(f"{where}.tool_calls[{at}].function.arguments", "it is no JSON object")
        blocks.append({"type": "tool_use", "id": _id(call.id), "name": call.function.name, "input": arguments})
    return blocks


def _id(id: str) -> str:
    """A call's id as Anthropic makes them; those of some models ("functions.f:0") hold more."""
    return _NOT_IN_IDS.sub("_", id)


def _tool_result(message: chat.ToolMessage, where: str) -> dict[str, Any]:
    content = message.content if isinstance(message.content, str) else _blocks(message.content, where)
    return {"type": "tool_result", "tool_use_id": _id(message.tool_call_id), "content": content}


def _blocks(content: Any, where: str) -> list[dict[str, Any]]:
    """Text that is empty is left out: Anthropic refuses it."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    blocks = [_block(part, f"{where}.content[{at}]") for at, part in enumerate(content)]
    return [block for block in blocks if block.get("text") != ""]


def _block(part: chat.Part, where: str) -> dict[str, Any]:
    if isinstance(part, chat.TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, chat.RefusalPart):
        return {"type": "text", "text": part.refusal}
    if isinstance(part, chat.ImagePart):
        url = part.image_url.url
        source = _data(url, where) if url.startswith("data:") else {"type": "url", "url": url}
        return {"type": "image", "source": source}
    if part.file.file_data is None:
        raise unsupported(where, "a file by its id cannot be carried over; send its bytes as file_data")
    found: dict[str, Any] = {"type": "document", "source": _data(part.file.file_data, where)}
    if part.file.filename is not None:
        found["title"] = part.file.filename
    return found


def _data(url: str, where: str) -> dict[str, Any]:
    """The bytes of a data: URL."""
    head, comma, data = url.partition(",")
    media_type, _, encoding = head.removeprefix("data:").partition(";")
    if not comma or not encoding.endswith("base64"):
        raise unsupported(where, "of data: URLs only those in base64 can be carried over")
    return {"type": "base64", "media_type": media_type, "data": data}


def _answer(body: bytes, asked: chat.Request) -> dict[str, Any]:
    return completion(read_answer(messages.answer, body), wants_object=wants_object(asked))


def _stream(asked: chat.Request) -> Stream:
    return MessagesAsChat(tells_usage=tells_usage(asked), wants_object=wants_object(asked))


_NO_LOGPROBS = "this model's back end speaks Anthropic's protocol, which has none"
WAY = Way(b"/messages", KEPT, DROPPED, _NO_LOGPROBS, _asked, _answer, _stream)
