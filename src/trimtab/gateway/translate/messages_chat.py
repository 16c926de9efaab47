"""The caller speaks Anthropic messages, the back end OpenAI chat completions.

Where vLLM's own /v1/messages (vllm/entrypoints/anthropic/serving.py, 0.33) makes a choice, the same is made here, so
that a prompt is the same whichever way it goes; docs/gateway.md lists the exceptions.
"""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.gateway.routes import Stream
from trimtab.gateway.translate import chat, messages
from trimtab.gateway.translate.chat_as_messages import ChatAsMessages, message
from trimtab.gateway.translate.translation import error_for, kept, read, read_answer, required, unsupported, write

PATH = b"/messages"
TRANSLATED = frozenset(messages.Request.__struct_fields__)
# vLLM's own extensions, which both of its endpoints name alike, and OpenAI's that vLLM has too.
KEPT = frozenset(
    {"top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty", "seed", "logit_bias",
     "min_tokens", "ignore_eos", "stop_token_ids", "include_stop_str_in_output", "skip_special_tokens",
     "chat_template_kwargs", "structured_outputs", "cache_salt", "priority", "kv_transfer_params",
     "ec_transfer_params", "vllm_xargs", "mm_processor_kwargs", "watermarking", "request_id"}
)  # fmt: skip
# What does not change what the model is asked, or what only Anthropic's own service has.
DROPPED = frozenset(
    {"metadata", "service_tier", "cache_control", "context_management", "inference_geo", "speed", "diagnostics",
     "betas", "anthropic_beta", "anthropic_version", "user_profile_id", "workspace_id"}
)  # fmt: skip
_BILLING = "x-anthropic-billing-header"  # Claude Code's, other in each request: it would defeat prefix caching
_REASONING_FIELDS = ("reasoning", "reasoning_content")


class MessagesToChat:
    """One request."""

    path = b"/chat/completions"

    def request(self, body: bytes) -> bytes:
        """See Translation."""
        asked = read(messages.request, body)
        if asked.max_tokens is None:
            raise required("max_tokens")
        fields = kept(body, TRANSLATED, KEPT, DROPPED)
        return write({**fields, **asked_of_chat(asked), **_sampling(asked)})

    def answer(self, body: bytes) -> bytes:
        """See Translation."""
        return msgspec.json.encode(message(read_answer(chat.answer, body)))

    def error(self, status: int, body: bytes) -> bytes:
        """See Translation."""
        return error_for(PATH, status, body)

    def stream(self) -> Stream:
        """See Translation."""
        return ChatAsMessages()


class CountTokens:
    """Anthropic's count_tokens, asked of vLLM's /tokenize."""

    path = b"/tokenize"

    def request(self, body: bytes) -> bytes:
        """See Translation."""
        asked = read(messages.request, body)
        templates = kept(body, TRANSLATED, KEPT, DROPPED)
        found = asked_of_chat(asked)
        wanted: dict[str, Any] = {name: found[name] for name in ("model", "messages", "tools") if name in found}
        if "chat_template_kwargs" in templates:
            wanted["chat_template_kwargs"] = templates["chat_template_kwargs"]
        return write(wanted)

    def answer(self, body: bytes) -> bytes:
        """See Translation."""
        return msgspec.json.encode({"input_tokens": read_answer(_count, body).count})

    def error(self, status: int, body: bytes) -> bytes:
        """See Translation."""
        return error_for(PATH, status, body)

    def stream(self) -> Stream:
        """A count is never streamed."""
        return ChatAsMessages()


class _Counted(msgspec.Struct):
    count: int


_count = msgspec.json.Decoder(_Counted)


# the request


def asked_of_chat(asked: messages.Request) -> dict[str, Any]:
    """What the model is shown: messages, tools and how to answer."""
    found: dict[str, Any] = {"model": asked.model, "messages": _messages(asked)}
    found.update(_tools(asked))
    form = asked.output_format or (asked.output_config.format if asked.output_config else None)
    if form is not None:
        schema = {"name": form.type, "schema": form.schema, "strict": True}
        found["response_format"] = {"type": "json_schema", "json_schema": schema}
    if asked.output_config is not None and asked.output_config.effort is not None:
        found["reasoning_effort"] = asked.output_config.effort
    if asked.thinking is not None and asked.thinking.type == "disabled":
        found["reasoning_effort"] = "none"
    return found


def _sampling(asked: messages.Request) -> dict[str, Any]:
    told = {
        "max_completion_tokens": asked.max_tokens, "stop": asked.stop_sequences or None,
        "temperature": asked.temperature, "top_p": asked.top_p, "stream": asked.stream,
        "stream_options": {"include_usage": True} if asked.stream else None,
    }  # fmt: skip
    return {name: value for name, value in told.items() if value is not None}


def _messages(asked: messages.Request) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    system = _system_text(asked.system or "")
    if system:
        out.append({"role": "system", "content": system})
    for at, turn in enumerate(asked.messages):
        if turn.role == "system":
            text = _system_text(turn.content, f"messages[{at}]")
            out += [{"role": "system", "content": text}] if text else []
        elif isinstance(turn.content, str):
            out.append({"role": turn.role, "content": turn.content})
        elif turn.role == "user":
            out += _user(turn.content, f"messages[{at}]")
        else:
            out.append(_assistant(turn.content, f"messages[{at}]"))
    return out


def _system_text(content: str | list[messages.Text] | list[messages.Block], where: str = "system") -> str:
    if isinstance(content, str):
        return "" if content.startswith(_BILLING) else content
    parts: list[str] = []
    for at, block in enumerate(content):
        if not isinstance(block, messages.Text):
            raise unsupported(f"{where}.content[{at}]", "instructions can only be text")
        parts += [] if block.text.startswith(_BILLING) else [block.text]
    return "".join(parts)


def _user(blocks: list[messages.Block], where: str) -> list[dict[str, Any]]:
    """Tool results, each a message, then what the user says; images within results come with the latter."""
    results: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []
    for at, block in enumerate(blocks):
        here = f"{where}.content[{at}]"
        if isinstance(block, messages.ToolResult):
            content = [messages.Text(block.content)] if isinstance(block.content, str) else block.content or []
            text = "\n".join(piece.text for piece in content if isinstance(piece, messages.Text))
            results.append({"role": "tool", "tool_call_id": block.tool_use_id, "content": text})
            shown += [_part(piece, here) for piece in content if not isinstance(piece, messages.Text)]
        elif isinstance(block, messages.Text | messages.Image | messages.Document):
            parts += [_part(block, here)] if not isinstance(block, messages.Text) or block.text else []
        else:
            raise unsupported(here, f"a user's message cannot hold {block.__struct_config__.tag}")
    if shown or parts:
        return [*results, {"role": "user", "content": chat.content([*shown, *parts])}]
    return results or [{"role": "user", "content": ""}]


def _assistant(blocks: list[messages.Block], where: str) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    thought = {"reasoning": "", "reasoning_content": ""}
    for at, block in enumerate(blocks):
        if isinstance(block, messages.Text):
            parts += [_part(block, where)] if block.text else []
        elif isinstance(block, messages.Thinking):
            thought[block.signature if block.signature in _REASONING_FIELDS else "reasoning"] += block.thinking
        elif isinstance(block, messages.ToolUse):
            arguments = write(block.input).decode()
            function = {"name": block.name, "arguments": arguments}
            calls.append({"id": block.id, "type": "function", "function": function})
        elif not isinstance(block, messages.RedactedThinking):
            here = f"{where}.content[{at}]"
            raise unsupported(here, f"an assistant's message cannot hold {block.__struct_config__.tag}")
    found: dict[str, Any] = {"role": "assistant", **{name: text for name, text in thought.items() if text}}
    if parts or not calls:
        found["content"] = chat.content(parts)
    if calls:
        found["tool_calls"] = calls
    return found


def _part(block: messages.Text | messages.Image | messages.Document, where: str) -> dict[str, Any]:
    if isinstance(block, messages.Text):
        return {"type": "text", "text": block.text}
    source = block.source
    if isinstance(source, messages.PlainText):
        return {"type": "text", "text": source.data}
    if isinstance(block, messages.Image):
        url = source.url if isinstance(source, messages.Address) else f"data:{source.media_type};base64,{source.data}"
        return {"type": "image_url", "image_url": {"url": url}}
    if isinstance(source, messages.Address):
        raise unsupported(f"{where}.source", "a document by its URL cannot be carried; send its bytes")
    file = {"file_data": f"data:{source.media_type};base64,{source.data}", "filename": block.title or "document.pdf"}
    return {"type": "file", "file": file}


def _tools(asked: messages.Request) -> dict[str, Any]:
    """Servers refuse a choice where there are no tools; one that needs them is left for them to refuse."""
    tools, choice = asked.tools or [], asked.tool_choice
    found: dict[str, Any] = {}
    if tools:
        found["tools"] = [_tool(tool, f"tools[{at}]") for at, tool in enumerate(tools)]
        found["tool_choice"] = "auto"
    if choice is not None and (tools or choice.type in ("any", "tool")):
        found["tool_choice"] = _tool_choice(choice)
        if choice.disable_parallel_tool_use:
            found["parallel_tool_calls"] = False
    return found


def _tool(tool: messages.Tool, where: str) -> dict[str, Any]:
    if tool.type not in (None, "custom"):
        raise unsupported(where, f"{tool.type} is a tool of Anthropic's own service; this model's back end has none")
    if tool.input_schema is None:
        raise required(f"{where}.input_schema")
    function: dict[str, Any] = {"name": tool.name, "parameters": {"type": "object", **tool.input_schema}}
    if tool.description is not None:
        function["description"] = tool.description
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _tool_choice(choice: messages.ToolChoice) -> str | dict[str, Any]:
    if choice.type != "tool":
        return "required" if choice.type == "any" else choice.type
    if not choice.name:
        raise required("tool_choice.name")
    return {"type": "function", "function": {"name": choice.name}}
