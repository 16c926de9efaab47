"""How each client program is run without a person: its configuration, its words, and what keeps it off the network."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

PROMPT = "Name three colours."


@dataclass(frozen=True)
class Program:
    """`$url` (without /v1), `$key` and `$model` are filled in everywhere; `files` are below the home.

    `connects`: `trimtab connect NAME --write` tells it the server, beside what `files` already say; else they tell it.
    `tries`: the host that it asks for whatever it is told.
    """

    name: str
    path: str
    argv: tuple[str, ...]
    files: dict[str, str] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)
    connects: bool = False
    tells_failure: bool = True  # by its exit code
    tries: str = ""


CODEX = """
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
apps = false
plugins = false
remote_plugin = false
"""
QWEN = {
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"disableAutoUpdate": True},
}
OPENCODE = {"autoupdate": False, "share": "disabled"}
AIDER = """
model: openai/$model
check-update: false
analytics: false
show-release-notes: false
"""
LANGCHAIN = """
from langchain_openai import ChatOpenAI
model = ChatOpenAI(model="$model", base_url="$url/v1", stream_usage=True)
for piece in model.stream("Name three colours."):
    print(piece.text, end="")
"""
ALL = (
    Program(
        "codex",
        "/responses",
        ("node/node_modules/.bin/codex", "exec", "--skip-git-repo-check", PROMPT),
        {".codex/config.toml": CODEX},
        connects=True,
    ),
    Program(
        "claude-code",
        "/messages",
        ("node/node_modules/.bin/claude", "-p", PROMPT),
        environ={
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "1",  # ten otherwise, and a minute and a half until a wrong key is shown
        },
        connects=True,
    ),
    Program(
        "qwen-code",
        "/chat/completions",
        ("node/node_modules/.bin/qwen", "-p", PROMPT),
        {".qwen/settings.json": json.dumps(QWEN)},
        connects=True,
    ),
    Program(
        "opencode",
        "/chat/completions",
        ("node/node_modules/.bin/opencode", "run", PROMPT),
        {".config/opencode/opencode.json": json.dumps(OPENCODE)},
        {
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "NPM_CONFIG_REGISTRY": "http://127.0.0.1:9",  # it would fetch a package of its own for plug-ins
        },
        connects=True,
    ),
    Program(
        "cline",
        "/chat/completions",
        ("node/node_modules/.bin/cline", "--auto-approve", "false", PROMPT),
        {
            ".cline/data/settings/global-settings.json": '{"telemetryOptOut": true, "autoUpdateEnabled": false}',
        },
        {"CLINE_SESSION_BACKEND_MODE": "local", "OPENAI_API_KEY": "$key"},  # no server of its own that outlives it
        tries="data.cline.bot",  # its feature flags
        connects=True,
    ),
    Program(
        "continue",
        "/chat/completions",
        ("node/node_modules/.bin/cn", "-p", PROMPT),
        environ={
            "CONTINUE_METRICS_ENABLED": "0",
            "CONTINUE_CLI_ENABLE_TELEMETRY": "0",
            "CONTINUE_CLI_AUTO_UPDATED": "true",
        },
        connects=True,
    ),
    Program(
        "aider",
        "/chat/completions",
        ("aider/bin/aider", "--yes-always", "--no-git", "--no-show-model-warnings", "--message", PROMPT),
        {
            ".aider.conf.yml": AIDER,
            ".aider/caches/model_prices_and_context_window.json": '{"openai/$model": {"max_input_tokens": 131072}}',
        },
        {"OPENAI_API_BASE": "$url/v1", "OPENAI_API_KEY": "$key", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        tells_failure=False,
    ),
    Program(
        "langchain", "/chat/completions", ("langchain/bin/python", "-c", LANGCHAIN), environ={"OPENAI_API_KEY": "$key"}
    ),
)
