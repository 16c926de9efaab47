"""The caller speaks OpenAI chat completions, the back end OpenAI responses."""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.gateway.routes import Stream
from trimtab.gateway.translate import chat, responses
from trimtab.gateway.translate.from_chat import Way, tells_usage
from trimtab.gateway.translate.responses_as_chat import ResponsesAsChat, completion
from trimtab.gateway.translate.translation import read_answer, unsupported

# What both of OpenAI's protocols name alike, and vLLM's extensions of both.
KEPT = frozenset(
    {"user", "service_tier", "metadata", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "top_k",
     "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty", "seed", "stop_token_ids", "ignore_eos",
     "include_stop_str_in_output", "skip_special_tokens", "chat_template_kwargs", "structured_outputs", "cache_salt",
     "priority", "kv_transfer_params", "ec_transfer_params", "vllm_xargs", "mm_processor_kwargs", "watermarking"}
)  # fmt: skip
DROPPED = frozenset({"store", "prediction", "top_logprobs", "prompt_cache_options", "include_reasoning"})


def _asked(asked: chat.Request) -> dict[str, Any]:
    limit = asked.max_completion_tokens if asked.max_completion_tokens is not None else asked.max_tokens
    told: dict[str, Any] = {
        "model": asked.model, "input": _input(asked.messages), "store": False, "max_output_tokens": limit,
        "temperature": asked.temperature, "top_p": asked.top_p, "stream": asked.stream, "stop": asked.stop or None,
        "reasoning": {"effort": asked.reasoning_effort} if asked.reasoning_effort is not None else None,
        "text": _text(asked) or None, "parallel_tool_calls": asked.parallel_tool_calls,
    }  # fmt: skip
    if asked.tools:
        told["tools"] = [_tool(tool.function) for tool in asked.tools]
        told["tool_choice"] = _choice(asked.tool_choice)
    return {name: value for name, value in told.items() if value is not None}


def _text(asked: chat.Request) -> dict[str, Any]:
    found: dict[str, Any] = {}
    form = asked.response_format
    if form is not None and form.type == "json_schema" and form.json_schema is not None:
        found["format"] = {"type": "json_schema", **_present(form.json_schema)}
    elif form is not None and form.type in ("text", "json_object"):
        found["format"] = {"type": form.type}
    elif form is not None:
        raise unsupported("response_format", f"{form.type} cannot be carried over")
    if asked.verbosity is not None:
        found["verbosity"] = asked.verbosity
    return found


def _present(record: msgspec.Struct) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__ if getattr(record, name) is not None}


def _tool(function: chat.Function) -> dict[str, Any]:
    """Chat's tools are not strict unless they say so, those of responses are."""
    return {"type": "function", "parameters": {}, "strict": False, **_present(function)}


def _choice(choice: str | chat.NamedChoice | chat.AllowedChoice | None) -> str | dict[str, Any] | None:
    if isinstance(choice, chat.NamedChoice):
        return {"type": "function", "name": choice.function.name}
    if isinstance(choice, chat.AllowedChoice):
        tools = [{"type": "function", "name": tool.function.name} for tool in choice.allowed_tools.tools]
        return {"type": "allowed_tools", "mode": choice.allowed_tools.mode, "tools": tools}
    return choice


# items


def _input(messages: list[chat.Message]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for at, message in enumerate(messages):
        where = f"messages[{at}]"
        if isinstance(message, chat.ToolMessage):
            output = message.content if isinstance(message.content, str) else _parts(message.content, where)
            items.append({"type": "function_call_output", "call_id": message.tool_call_id, "output": output})
        elif isinstance(message, chat.Assistant):
            items += _assistant(message)
        else:
            role = message.__struct_config__.tag
            content = message.content if isinstance(message.content, str) else _parts(message.content, where)
            items.append({"role": role, "content": content})
    return items


def _assistant(message: chat.Assistant) -> list[dict[str, Any]]:
    """Reasoning is left out: OpenAI takes back only what bears an id of its own store."""
    parts = [chat.TextPart(message.content)] if isinstance(message.content, str) else message.content or []
    texts = [part.text if isinstance(part, chat.TextPart) else part.refusal for part in parts]
    text = "".join([*texts, message.refusal or ""])
    items: list[dict[str, Any]] = [{"role": "assistant", "content": text}] if text else []
    for call in message.tool_calls or []:
        function = {"name": call.function.name, "arguments": call.function.arguments}
        items.append({"type": "function_call", "call_id": call.id, **function})
    return items


def _parts(parts: Any, where: str) -> list[dict[str, Any]]:
    return [_part(part, f"{where}.content[{at}]") for at, part in enumerate(parts)]


def _part(part: chat.Part, where: str) -> dict[str, Any]:
    if isinstance(part, chat.TextPart):
        return {"type": "input_text", "text": part.text}
    if isinstance(part, chat.RefusalPart):
        return {"type": "input_text", "text": part.refusal}
    if isinstance(part, chat.ImagePart):
        return {"type": "input_image", "image_url": part.image_url.url, "detail": part.image_url.detail or "auto"}
    if part.file.file_data is None and part.file.file_id is None:
        raise unsupported(where, "a file without its bytes or its id")
    return {"type": "input_file", **_present(part.file)}


def _answer(body: bytes, asked: chat.Request) -> dict[str, Any]:
    return completion(read_answer(responses.answer, body))


def _stream(asked: chat.Request) -> Stream:
    return ResponsesAsChat(tells_usage=tells_usage(asked))


WAY = Way(b"/responses", KEPT, DROPPED, "they are not carried over", _asked, _answer, _stream)
