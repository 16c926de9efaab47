"""The caller speaks OpenAI responses, the back end chat completions.

Input items become messages as in vLLM's own /v1/responses (vllm/entrypoints/openai/responses/utils.py, 0.33):
reasoning, text and calls that follow each other are one assistant's message; a custom tool is a function with one text
argument.
"""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.gateway.routes import Stream
from trimtab.gateway.translate import chat, responses
from trimtab.gateway.translate.chat_as_responses import Called, ChatAsResponses, Echo, response
from trimtab.gateway.translate.translation import (
    error_for,
    kept,
    present,
    read,
    read_answer,
    required,
    unsupported,
    write,
)

PATH = b"/responses"
TRANSLATED = frozenset(responses.Request.__struct_fields__)
KEPT = frozenset(
    {"user", "service_tier", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "top_k", "min_p",
     "presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias", "seed", "stop", "stop_token_ids",
     "ignore_eos", "include_stop_str_in_output", "skip_special_tokens", "chat_template_kwargs", "structured_outputs",
     "cache_salt", "priority", "kv_transfer_params", "ec_transfer_params", "vllm_xargs", "mm_processor_kwargs",
     "watermarking", "request_id"}
)  # fmt: skip
DROPPED = frozenset(
    {"metadata", "store", "truncation", "stream_options", "max_tool_calls", "context_management", "include_reasoning",
     "prompt_cache_options", "client_metadata"}
)  # fmt: skip
_LOGPROBS = "message.output_text.logprobs"
# Tools of OpenAI's own service without which a model can answer, too; any other is refused.
_OPTIONAL_TOOLS = ("web_search", "image_generation")
_TEXTS = frozenset({"input_text", "output_text", "text", "reasoning_text", "summary_text"})
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
INPUT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}  # of a custom tool
SEPARATOR = "__"  # between the name of a namespace and that of its tool, as in vLLM


class ResponsesToChat:
    """One request."""

    path = b"/chat/completions"

    def __init__(self) -> None:
        self._echo = Echo({}, {})

    def request(self, body: bytes) -> bytes:
        """See Translation."""
        asked = read(responses.request, body)
        if asked.previous_response_id is not None:
            raise unsupported("previous_response_id", "this model's back end keeps no answers; send the turns as input")
        if asked.background:
            raise unsupported("background", "this model's back end answers at once only")
        if _LOGPROBS in (asked.include or ()):
            raise unsupported("include", f"{_LOGPROBS} is not carried over")
        fields = kept(body, TRANSLATED, KEPT, DROPPED)
        tools, names = _tools(asked.tools or [])
        self._echo = Echo(present(body), names)
        found: dict[str, Any] = {**fields, "model": asked.model, "messages": Messages(asked).out}
        found.update(_choice(asked.tool_choice, tools, names))
        found.update(_form(asked))
        return write(found)

    def answer(self, body: bytes) -> bytes:
        """See Translation."""
        return msgspec.json.encode(response(read_answer(chat.answer, body), self._echo))

    def error(self, status: int, body: bytes) -> bytes:
        """See Translation."""
        return error_for(PATH, status, body)

    def stream(self) -> Stream:
        """See Translation."""
        return ChatAsResponses(self._echo)


def _form(asked: responses.Request) -> dict[str, Any]:
    """How to answer."""
    told: dict[str, Any] = {
        "max_completion_tokens": asked.max_output_tokens, "temperature": asked.temperature, "top_p": asked.top_p,
        "parallel_tool_calls": asked.parallel_tool_calls if asked.tools else None, "stream": asked.stream,
        "stream_options": {"include_usage": True} if asked.stream else None,
        "reasoning_effort": asked.reasoning.effort if asked.reasoning else None,
        "verbosity": asked.text.verbosity if asked.text else None,
    }  # fmt: skip
    form = asked.text.format if asked.text else None
    if form is not None and form.type == "json_schema":
        schema = {"name": form.name, "schema": form.schema, "strict": form.strict, "description": form.description}
        schema = {name: value for name, value in schema.items() if value is not None}
        told["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif form is not None and form.type == "json_object":
        told["response_format"] = {"type": "json_object"}
    elif form is not None and form.type != "text":
        raise unsupported("text.format", f"{form.type} is not known")
    return {name: value for name, value in told.items() if value is not None}


# tools


def _tools(asked: list[responses.Tool]) -> tuple[list[dict[str, Any]], dict[str, Called]]:
    """The tools for chat, and who each of their names is."""
    tools: list[dict[str, Any]] = []
    names: dict[str, Called] = {}
    for at, tool in enumerate(asked):
        where = f"tools[{at}]"
        inner = [(tool, None)] if tool.type != "namespace" else [(t, tool.name or "") for t in tool.tools or []]
        for one, namespace in inner:
            if one.type.startswith(_OPTIONAL_TOOLS):
                continue
            function = _function(one, where)
            called = Called(function["name"], namespace, one.type == "custom")
            function["name"] = called.flat
            names[called.flat] = called
            tools.append({"type": "function", "function": function})
    return tools, names


def _function(tool: responses.Tool, where: str) -> dict[str, Any]:
    if tool.type not in ("function", "custom"):
        raise unsupported(where, f"{tool.type} is a tool of OpenAI's own service; this model's back end has none")
    if not tool.name:
        raise required(f"{where}.name")
    if tool.format is not None and tool.format.get("type") == "grammar":
        raise unsupported(f"{where}.format", "a grammar cannot be kept to by this model's back end")
    function: dict[str, Any] = {"name": tool.name}
    if tool.description is not None:
        function["description"] = tool.description
    if tool.type == "custom":
        function["parameters"] = INPUT
    elif tool.parameters is not None:
        function["parameters"] = tool.parameters
    if tool.strict is not None:
        function["strict"] = tool.strict
    return function


def _choice(
    choice: str | responses.ToolChoice | None, tools: list[dict[str, Any]], names: dict[str, Called]
) -> dict[str, Any]:
    """`tools` and `tool_choice`; of tools that are only partly allowed, the others are left out."""
    if isinstance(choice, responses.ToolChoice):
        if choice.type == "allowed_tools":
            allowed = {_named(one, names) for one in choice.tools or []}
            tools = [tool for tool in tools if tool["function"]["name"] in allowed]
            choice = choice.mode or "auto"
        else:
            return {"tools": tools, "tool_choice": {"type": "function", "function": {"name": _named(choice, names)}}}
    if not tools and choice in (None, "auto", "none"):
        return {}
    found: dict[str, Any] = {"tools": tools} if tools else {}
    return {**found, "tool_choice": choice} if choice is not None else found


def _named(choice: responses.ToolChoice, names: dict[str, Called]) -> str:
    if choice.type not in ("function", "custom"):
        raise unsupported("tool_choice", f"{choice.type} is a tool of OpenAI's own service")
    for flat, called in names.items():
        if choice.name == flat or (choice.name == called.name and choice.namespace in (None, called.namespace)):
            return flat
    raise required("tool_choice", f"there is no tool {choice.name} in tools")


# messages


class Messages:
    """Chat's messages of a request's instructions and input."""

    def __init__(self, asked: responses.Request) -> None:
        self.out: list[dict[str, Any]] = []
        self._shown: list[dict[str, Any]] = []  # images that tools gave: shown after the last of their results
        if asked.instructions:
            self._instruct(asked.instructions)
        if isinstance(asked.input, str):
            self.out.append({"role": "user", "content": asked.input})
            return
        for at, item in enumerate(asked.input):
            if self._shown and item.type not in _OUTPUTS:
                self._show()
            self._item(item, f"input[{at}]")
        self._show()
        for message in self.out:
            if message["role"] == "assistant" and "tool_calls" not in message:
                message.setdefault("content", "")  # of one that has reasoning only

    def _item(self, item: responses.Item, where: str) -> None:
        if item.type == "message":
            self._message(item, where)
        elif item.type == "reasoning":
            texts = [part.text for part in (item.content or item.summary or []) if isinstance(part, responses.Part)]
            field = "reasoning_content" if (item.id or "").startswith("rsc_") else "reasoning"
            text = "".join(text for text in texts if text)
            if text:
                self._assistant(field, text)
        elif item.type in ("function_call", "custom_tool_call"):
            self._call(item, where)
        elif item.type in _OUTPUTS:
            self._output(item, where)
        else:
            raise unsupported(where, f"an item of type {item.type} cannot be carried over")

    def _message(self, item: responses.Item, where: str) -> None:
        parts = _parts(item.content if item.content is not None else "", where)
        if item.role in ("system", "developer"):
            if any(part["type"] != "text" for part in parts):
                raise unsupported(where, "instructions can only be text")
            self._instruct("".join(part["text"] for part in parts))
        elif item.role == "user":
            self.out.append({"role": "user", "content": chat.content(parts)})
        elif item.role == "assistant":
            self._assistant("content", chat.content(parts))
        else:
            raise required(f"{where}.role", "it has to be user, assistant, system or developer")

    def _instruct(self, text: str) -> None:
        """Instructions at the beginning are one message: some templates take no second."""
        if len(self.out) == 1 and self.out[0]["role"] == "system":
            self.out[0]["content"] += "\n\n" + text
        else:
            self.out.append({"role": "system", "content": text})

    def _assistant(self, field: str, value: Any) -> None:
        if self.out and self.out[-1]["role"] == "assistant" and field not in self.out[-1]:
            self.out[-1][field] = value
        else:
            self.out.append({"role": "assistant", field: value})

    def _call(self, item: responses.Item, where: str) -> None:
        if not item.call_id or not item.name:
            raise required(f"{where}.call_id" if not item.call_id else f"{where}.name")
        arguments = item.arguments or "{}"
        if item.type == "custom_tool_call":
            arguments = msgspec.json.encode({"input": item.input or ""}).decode()
        name = Called(item.name, item.namespace, False).flat
        call = {"id": item.call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        if self.out and self.out[-1]["role"] == "assistant":
            self.out[-1].setdefault("tool_calls", []).append(call)
        else:
            self.out.append({"role": "assistant", "tool_calls": [call]})

    def _output(self, item: responses.Item, where: str) -> None:
        if not item.call_id:
            raise required(f"{where}.call_id")
        parts = _parts(item.output if item.output is not None else "", where)
        text = "\n".join(part["text"] for part in parts if part["type"] == "text")
        self.out.append({"role": "tool", "tool_call_id": item.call_id, "content": text})
        self._shown += [part for part in parts if part["type"] != "text"]

    def _show(self) -> None:
        if self._shown:
            self.out.append({"role": "user", "content": chat.content(self._shown)})
            self._shown = []


def _parts(content: str | list[responses.Part], where: str) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [_part(part, f"{where}.content[{at}]") for at, part in enumerate(content)]


def _part(part: responses.Part, where: str) -> dict[str, Any]:
    if part.type in _TEXTS and part.text is not None:
        return {"type": "text", "text": part.text}
    if part.type == "refusal" and part.refusal is not None:
        return {"type": "text", "text": part.refusal}
    if part.type == "input_image" and part.image_url is not None:
        image = {"url": part.image_url}
        if part.detail is not None:
            image["detail"] = part.detail
        return {"type": "image_url", "image_url": image}
    if part.type == "input_file" and part.file_data is not None:
        return {"type": "file", "file": {"file_data": part.file_data, "filename": part.filename or "file"}}
    raise unsupported(where, f"{part.type} without its text or bytes cannot be carried over")
