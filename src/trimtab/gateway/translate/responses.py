"""OpenAI responses as records: what the translations read of requests, answers and stream events."""

from __future__ import annotations

from typing import Any

import msgspec


class Part(msgspec.Struct):
    """A piece of an item's content, of any type."""

    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: str | None = None
    detail: str | None = None
    file_data: str | None = None
    filename: str | None = None


class Item(msgspec.Struct):
    """An item of input or output, of any type; without a type it is a message."""

    type: str = "message"
    id: str | None = None
    role: str | None = None
    content: str | list[Part] | None = None
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    arguments: str | None = None
    input: str | None = None
    output: str | list[Part] | None = None
    summary: list[Part] | None = None


class Tool(msgspec.Struct):
    """A tool of any type."""

    type: str
    name: str | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    format: dict[str, Any] | None = None
    tools: list[Tool] | None = None


class ToolChoice(msgspec.Struct):
    """A tool, or the tools that are allowed."""

    type: str
    name: str | None = None
    namespace: str | None = None
    mode: str | None = None
    tools: list[ToolChoice] | None = None


class Format(msgspec.Struct):
    """The form of an answer."""

    type: str
    name: str | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None
    description: str | None = None


class TextConfig(msgspec.Struct):
    """How the text is to be."""

    format: Format | None = None
    verbosity: str | None = None


class Reasoning(msgspec.Struct):
    """How much to reason."""

    effort: str | None = None


class Request(msgspec.Struct):
    """The fields that are translated."""

    model: str
    input: str | list[Item]
    instructions: str | None = None
    tools: list[Tool] | None = None
    tool_choice: str | ToolChoice | None = None
    text: TextConfig | None = None
    reasoning: Reasoning | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    parallel_tool_calls: bool | None = None
    stream: bool | None = None
    background: bool | None = None
    include: list[str] | None = None
    previous_response_id: str | None = None


class InputDetails(msgspec.Struct):
    """Of the prompt's tokens."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class OutputDetails(msgspec.Struct):
    """Of the answer's tokens."""

    reasoning_tokens: int | None = None


class Usage(msgspec.Struct):
    """Tokens of a request."""

    input_tokens: int = 0
    output_tokens: int = 0
    input_tokens_details: InputDetails | None = None
    output_tokens_details: OutputDetails | None = None


class Incomplete(msgspec.Struct):
    """Why an answer is not whole."""

    reason: str | None = None


class Fault(msgspec.Struct):
    """Why there is no answer."""

    code: str | None = None
    message: str = ""


class Answer(msgspec.Struct):
    """A whole answer, or what a stream's first and last events carry."""

    id: str = ""
    model: str = ""
    created_at: float = 0
    status: str | None = None
    output: list[Item] = []
    usage: Usage | None = None
    incomplete_details: Incomplete | None = None
    error: Fault | None = None


class StreamEvent(msgspec.Struct):
    """An event of a stream, of any type."""

    type: str
    response: Answer | None = None
    item: Item | None = None
    item_id: str = ""
    output_index: int = 0
    delta: str = ""
    arguments: str = ""
    input: str = ""
    code: int | str | None = None
    message: str | None = None


request = msgspec.json.Decoder(Request)
answer = msgspec.json.Decoder(Answer)
event = msgspec.json.Decoder(StreamEvent)
