"""Anthropic messages as records: what the translations read of requests, answers and stream events."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Base64(msgspec.Struct, tag="base64"):
    """Bytes within the request."""

    data: str
    media_type: str = "image/jpeg"


class Address(msgspec.Struct, tag="url"):
    """Something that the server fetches."""

    url: str


class PlainText(msgspec.Struct, tag="text"):
    """A document's text."""

    data: str


class Text(msgspec.Struct, tag="text"):
    """Text."""

    text: str


class Image(msgspec.Struct, tag="image"):
    """An image."""

    source: Base64 | Address


class Document(msgspec.Struct, tag="document"):
    """A PDF or a text."""

    source: Base64 | Address | PlainText
    title: str | None = None


class Thinking(msgspec.Struct, tag="thinking"):
    """The model's reasoning."""

    thinking: str
    signature: str = ""


class RedactedThinking(msgspec.Struct, tag="redacted_thinking"):
    """Reasoning that only its author can read."""

    data: str = ""


class ToolUse(msgspec.Struct, tag="tool_use"):
    """A call."""

    id: str
    name: str
    input: dict[str, Any] = {}


class ToolResult(msgspec.Struct, tag="tool_result"):
    """What a call gave."""

    tool_use_id: str
    content: str | list[Text | Image | Document] | None = None


Block = Text | Image | Document | Thinking | RedactedThinking | ToolUse | ToolResult


class Message(msgspec.Struct):
    """One turn."""

    role: Literal["user", "assistant", "system"]
    content: str | list[Block]


class Tool(msgspec.Struct):
    """A tool; of another `type` than custom, one that Anthropic runs or defines."""

    name: str
    type: str | None = None
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    strict: bool | None = None


class ToolChoice(msgspec.Struct):
    """Which tool."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class Format(msgspec.Struct):
    """The form of an answer."""

    type: Literal["json_schema"]
    schema: dict[str, Any]


class OutputConfig(msgspec.Struct):
    """Effort and form."""

    effort: str | None = None
    format: Format | None = None


class ThinkingConfig(msgspec.Struct):
    """Whether to think."""

    type: str


class Request(msgspec.Struct):
    """The fields that are translated, of messages and of count_tokens (which has no max_tokens)."""

    model: str
    messages: list[Message]
    max_tokens: int | None = None
    system: str | list[Text] | None = None
    stop_sequences: list[str] | None = None
    stream: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | None = None
    thinking: ThinkingConfig | None = None
    output_config: OutputConfig | None = None
    output_format: Format | None = None


class Usage(msgspec.Struct):
    """Tokens: `input_tokens` are those that no cache had."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class Said(msgspec.Struct):
    """A block of an answer, of any type."""

    type: str
    text: str = ""
    thinking: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = msgspec.Raw()


class Answer(msgspec.Struct):
    """A whole answer, or how a stream begins."""

    id: str = ""
    model: str = ""
    content: list[Said] = []
    stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: Usage | None = None


class Delta(msgspec.Struct):
    """What an event adds."""

    type: str | None = None
    text: str = ""
    thinking: str = ""
    partial_json: str = ""
    stop_reason: str | None = None
    stop_sequence: str | None = None


class Fault(msgspec.Struct):
    """An error within a stream."""

    type: str = "api_error"
    message: str = ""


class StreamEvent(msgspec.Struct):
    """An event of a stream, of any type."""

    type: str
    index: int = 0
    message: Answer | None = None
    content_block: Said | None = None
    delta: Delta | None = None
    usage: Usage | None = None
    error: Fault | None = None


request = msgspec.json.Decoder(Request)
answer = msgspec.json.Decoder(Answer)
event = msgspec.json.Decoder(StreamEvent)
