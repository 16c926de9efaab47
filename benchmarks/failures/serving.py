"""What goes wrong while the server serves."""

from __future__ import annotations

import signal

import models as m
from case import SERVED, TOOLS, asks, chat, hello, kill, kill_once_told, serve

SERVING = (
    serve(
        "worker-killed",
        "killed-by-kernel",
        "SIGKILL to the worker",
        *SERVED,
        during=kill("VLLM::Worker", signal.SIGKILL),
    ),
    serve(
        "core-killed",
        "killed-by-kernel",
        "SIGKILL to EngineCore",
        *SERVED,
        during=kill("VLLM::EngineCore", signal.SIGKILL),
    ),
    serve("worker-segfault", "segfault", "SIGSEGV to the worker", *SERVED, during=kill("VLLM::Worker", signal.SIGSEGV)),
    serve(
        "worker-stopped",
        "hang",
        "SIGSTOP to the worker",
        *SERVED,
        during=kill("VLLM::Worker", signal.SIGSTOP),
        settle_s=5,
    ),
    serve(
        "core-stopped",
        "",
        "SIGSTOP to EngineCore: a request hangs, /health answers 200, and the log tells nothing of it",
        *SERVED,
        healthy=True,
        during=kill("VLLM::EngineCore", signal.SIGSTOP),
        settle_s=5,
    ),
    serve(
        "killed-in-load",
        "killed-by-kernel",
        "SIGKILL to EngineCore while it starts",
        starting=kill_once_told("Starting to load model", "VLLM::EngineCore", signal.SIGKILL),
    ),
    serve(
        "requests-refused",
        "",
        "a model without a chat template",
        *SERVED,
        prepare=m.without("chat_template.jinja"),
        healthy=True,
        answered="chat-template-missing",
        during=asks(chat),
    ),
    serve(
        "requests-tools",
        "",
        "tools sent to a server without a parser",
        *SERVED,
        healthy=True,
        answered="tool-parser-missing",
        during=asks(lambda s: chat(s, tools=TOOLS)),
    ),
    serve(
        "requests-mixed",
        "",
        "a prompt too long, an unknown model, an unknown path, no JSON, an image, a wrong role",
        *SERVED,
        "--api-key",
        "secret-of-the-server",
        healthy=True,
        during=asks(
            chat,
            lambda s: s.ask("/v1/chat/completions", hello(), "wrong"),
            lambda s: s.ask("/v1/chat/completions", hello() | {"max_tokens": 4096}, "secret-of-the-server"),
            lambda s: s.ask("/v1/completions", {"model": "demo", "prompt": "word " * 900}, "secret-of-the-server"),
            lambda s: s.ask("/v1/completions", {"model": "gpt-4", "prompt": "a"}, "secret-of-the-server"),
            lambda s: s.ask("/chat/completions", hello(), "secret-of-the-server"),
            lambda s: s.ask("/v1/chat/completions", b"no json", "secret-of-the-server"),
            lambda s: s.ask(
                "/v1/chat/completions",
                hello()
                | {
                    "messages": [
                        {
                            "role": "user",
                            "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
                        }
                    ]
                },
                "secret-of-the-server",
            ),
            lambda s: s.ask(
                "/v1/completions", {"model": "demo", "prompt": "a", "temperature": -3}, "secret-of-the-server"
            ),
            lambda s: s.ask("/v1/completions", hello(), "secret-of-the-server"),
        ),
    ),
    serve(
        "requests-template-raises",
        "message-order-refused",
        "a template that refuses two user messages",
        *SERVED,
        "--chat-template",
        "MODEL/t.jinja",
        prepare=m.text(
            "t.jinja",
            "{% for m in messages %}{% if (m.role == 'user')"
            " != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/') }}"
            "{% endif %}{{ m.content }}{% endfor %}",
        ),
        during=asks(
            lambda s: s.ask(
                "/v1/chat/completions",
                hello() | {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]},
            )
        ),
    ),
    serve(
        "requests-grammar",
        "",
        "a JSON schema that no grammar can be made of",
        *SERVED,
        healthy=True,
        during=asks(
            lambda s: chat(
                s,
                response_format={
                    "type": "json_schema",
                    "json_schema": {"name": "a", "schema": {"type": "string", "pattern": "(?<=a)b"}},
                },
            ),
            lambda s: chat(s, structured_outputs={"grammar": "root ::= nothing"}),
        ),
    ),
)
