"""OpenAI chat completions as records: what the translations read of requests, answers and stream events."""

from __future__ import annotations

from typing import Any

import msgspec


class Url(msgspec.Struct):
    """An image's address, or its bytes as a data: URL."""

    url: str
    detail: str | None = None


class FileData(msgspec.Struct):
    """A file within a message."""

    file_data: str | None = None
    filename: str | None = None
    file_id: str | None = None


class TextPart(msgspec.Struct, tag="text"):
    """Text."""

    text: str


class RefusalPart(msgspec.Struct, tag="refusal"):
    """The assistant's refusal."""

    refusal: str


class ImagePart(msgspec.Struct, tag="image_url"):
    """An image."""

    image_url: Url


class FilePart(msgspec.Struct, tag="file"):
    """A file."""

    file: FileData


Part = TextPart | RefusalPart | ImagePart | FilePart


class FunctionCall(msgspec.Struct):
    """A call's name and its arguments as JSON text."""

    name: str
    arguments: str = ""


class FunctionToolCall(msgspec.Struct, tag="function"):
    """One call of an assistant's message in a request."""

    id: str
    function: FunctionCall


class System(msgspec.Struct, tag_field="role", tag="system"):
    """Instructions."""

    content: str | list[TextPart]


class Developer(msgspec.Struct, tag_field="role", tag="developer"):
    """Instructions, by OpenAI's newer name."""

    content: str | list[TextPart]


class User(msgspec.Struct, tag_field="role", tag="user"):
    """What the user says."""

    content: str | list[Part]


class Assistant(msgspec.Struct, tag_field="role", tag="assistant"):
    """What the model said."""

    content: str | list[TextPart | RefusalPart] | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[FunctionToolCall] | None = None


class ToolMessage(msgspec.Struct, tag_field="role", tag="tool"):
    """What a tool gave."""

    tool_call_id: str
    content: str | list[TextPart | ImagePart]


Message = System | Developer | User | Assistant | ToolMessage


class Function(msgspec.Struct):
    """A tool's definition."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(msgspec.Struct, tag="function"):
    """A tool that the caller runs."""

    function: Function


class Named(msgspec.Struct):
    """A function's name."""

    name: str


class NamedChoice(msgspec.Struct, tag="function"):
    """This very function."""

    function: Named


class Allowed(msgspec.Struct):
    """Some of the tools."""

    mode: str
    tools: list[NamedChoice]


class AllowedChoice(msgspec.Struct, tag="allowed_tools"):
    """Some of the tools."""

    allowed_tools: Allowed


class JsonSchema(msgspec.Struct):
    """The form of an answer."""

    name: str = ""
    description: str | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None


class ResponseFormat(msgspec.Struct):
    """Text, any JSON, or JSON of a schema."""

    type: str
    json_schema: JsonSchema | None = None


class StreamOptions(msgspec.Struct):
    """Whether the stream's last event tells the usage."""

    include_usage: bool | None = None


class Request(msgspec.Struct):
    """The fields that are translated."""

    messages: list[Message]
    model: str
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stop: str | list[str] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: float | None = None
    top_p: float | None = None
    tools: list[Tool] | None = None
    tool_choice: str | NamedChoice | AllowedChoice | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: str | None = None
    response_format: ResponseFormat | None = None
    n: int | None = None
    logprobs: bool | None = None
    verbosity: str | None = None


class PromptDetails(msgspec.Struct):
    """Prompt tokens read from a cache and written to one; the last two are vLLM's and OpenAI's names of one thing."""

    cached_tokens: int | None = None
    created_cache_tokens: int | None = None
    cache_write_tokens: int | None = None


class CompletionDetails(msgspec.Struct):
    """Of the completion's tokens."""

    reasoning_tokens: int | None = None


class Tokens(msgspec.Struct):
    """A request's usage."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None

    @property
    def prompt(self) -> int:
        """Tokens of the request."""
        return self.prompt_tokens or 0

    @property
    def completion(self) -> int:
        """Tokens of the answer."""
        return self.completion_tokens or 0

    @property
    def cached(self) -> int | None:
        """Prompt tokens that came from a cache, if the server tells."""
        return self.prompt_tokens_details.cached_tokens if self.prompt_tokens_details else None

    @property
    def written(self) -> int | None:
        """Prompt tokens that went into a cache, if the server tells."""
        details = self.prompt_tokens_details
        if details is None:
            return None
        return details.created_cache_tokens if details.created_cache_tokens is not None else details.cache_write_tokens

    @property
    def reasoning(self) -> int | None:
        """Tokens of the answer that were reasoning, if the server tells."""
        return self.completion_tokens_details.reasoning_tokens if self.completion_tokens_details else None


class CalledFunction(msgspec.Struct):
    """Of an answer; of a stream's piece, either may be missing."""

    name: str | None = None
    arguments: str | None = None


class ToolCall(msgspec.Struct):
    """Of an answer or of a stream's piece."""

    index: int | None = None
    id: str | None = None
    function: CalledFunction | None = None


class Said(msgspec.Struct):
    """An answer's message, or a piece of it. vLLM to 0.11.0 has `reasoning_content`, to 0.15 both, then `reasoning`."""

    content: str | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None

    @property
    def thought(self) -> str:
        """The reasoning under either name."""
        return self.reasoning or self.reasoning_content or ""


class Choice(msgspec.Struct):
    """One answer. `stop_reason` is vLLM's: the stop string or token that ended it."""

    index: int | None = None
    message: Said | None = None
    delta: Said | None = None
    finish_reason: str | None = None
    stop_reason: int | str | None = None


class Answer(msgspec.Struct):
    """A whole answer or an event of a stream. Servers leave out much, or say null."""

    id: str | None = None
    model: str | None = None
    created: float | None = None
    choices: list[Choice] | None = None
    usage: Tokens | None = None
    error: msgspec.Raw = msgspec.Raw()
    object: str | None = None

    @property
    def first(self) -> Choice:
        """The first of its answers, empty if there is none."""
        return next((choice for choice in self.choices or () if not choice.index), Choice())

    @property
    def failed(self) -> bool:
        """Whether it is an error instead (vLLM before 0.10 marks it by `object`)."""
        return self.object == "error" or bytes(self.error) not in (b"", b"null")


request = msgspec.json.Decoder(Request)
answer = msgspec.json.Decoder(Answer)


def content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """A message's content: text alone is a string, which every server and template takes."""
    if not parts:
        return ""
    if len(parts) == 1 and parts[0]["type"] == "text":
        return str(parts[0]["text"])
    return parts
