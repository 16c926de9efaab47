"""What is done wrong, a case each: the command, what is prepared and what happens while it runs."""

from __future__ import annotations

import os
import resource
import signal
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import models as m

if TYPE_CHECKING:
    from run import Server

CLI = "vllm.entrypoints.cli.main"
API = "vllm.entrypoints.openai.api_server"
QUICK = ("--dtype", "float16", "--enforce-eager", "--max-model-len", "512", "--host", "127.0.0.1", "--port", "PORT")


@dataclass(frozen=True)
class Case:
    """`cause` is of the closed list; `happened` says in a sentence what was done."""

    kind: str
    cause: str
    happened: str
    command: tuple[str, ...] = ()
    module: str = CLI
    env: dict[str, str] = field(default_factory=dict)
    prepare: Callable[[Path], None] = lambda model: None
    before: Callable[[], None] | None = None
    during: Callable[[Server], list[str]] | None = None
    shell: str = ""
    nobody: bool = False  # root without any of its privileges
    healthy: bool = False
    wait_s: float = 170
    settle_s: float = 20


def serve(kind: str, cause: str, happened: str, *more: str, model: str = "MODEL", **rest: object) -> Case:
    """`vllm serve` of the demo model, small and quick."""
    return Case(kind, cause, happened, ("serve", model, *QUICK, *more), **rest)  # type: ignore[arg-type]


def limit(what: int, value: int) -> Callable[[], None]:
    """A resource limit for the engine."""
    return lambda: resource.setrlimit(what, (value, value))


def in_cgroup(mib: int) -> Callable[[], None]:
    """A memory limit by a control group (version 1)."""

    def enter() -> None:
        group = Path(f"/sys/fs/cgroup/memory/trimtab-{mib}")
        group.mkdir(exist_ok=True)
        (group / "memory.limit_in_bytes").write_text(str(mib << 20))
        (group / "cgroup.procs").write_text(str(os.getpid()))

    return enter


def in_pids_cgroup(most: int) -> Callable[[], None]:
    """A limit of processes and threads by a control group (version 1)."""

    def enter() -> None:
        group = Path(f"/sys/fs/cgroup/pids/trimtab-{most}")
        group.mkdir(exist_ok=True)
        (group / "pids.max").write_text(str(most))
        (group / "cgroup.procs").write_text(str(os.getpid()))

    return enter


def chat(server: Server, content: object = "Say hello.", **more: object) -> str:
    """One chat request."""
    body = {"model": "demo", "messages": [{"role": "user", "content": content}], "max_tokens": 8, **more}
    return server.ask("/v1/chat/completions", body)


def kill(name: str, number: int) -> Callable[[Server], list[str]]:
    """A signal to one process, after a good request; then another request."""

    def act(server: Server) -> list[str]:
        first = chat(server)
        server.signal(name, number)
        return [first, server.ask("/v1/chat/completions", _hello(), timeout=100), server.ask("/health", timeout=5)]

    return act


def _hello() -> dict[str, object]:
    return {"model": "demo", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8}


def asks(*requests: Callable[[Server], str]) -> Callable[[Server], list[str]]:
    """Requests one after another, then SIGTERM."""

    def act(server: Server) -> list[str]:
        answers = [request(server) for request in requests]
        if server.process:
            os.kill(server.process.pid, signal.SIGTERM)
        return answers

    return act


def hold_port(model: Path) -> None:
    """Listen on a port for as long as this program runs; an engine inherits nothing of it."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", 18399))
    listener.listen()
    HELD.append(listener)


HELD: list[socket.socket] = []
SERVED = ("--served-model-name", "demo")

COMMAND_LINE = (
    serve("flag-unknown", "flag-unknown", "a flag that no version has", "--max-model-length", "512"),
    serve("flag-removed-log-requests", "flag-removed", "a flag of older versions", "--disable-log-requests"),
    serve("flag-removed-swap-space", "flag-removed", "a flag of older versions", "--swap-space", "4"),
    serve("flag-removed-reasoning", "flag-removed", "a flag of older versions", "--enable-reasoning"),
    serve("value-not-a-choice", "flag-value-invalid", "a value that is none of the choices", "--dtype", "fp12"),
    serve("value-not-a-number", "flag-value-invalid", "a word for a number", "--max-num-seqs", "many"),
    serve("value-out-of-range", "flag-value-invalid", "a share above one", "--gpu-memory-utilization", "1.5"),
    serve("value-missing", "flag-value-invalid", "a flag without its value", "--api-key"),
    serve("json-broken", "flag-value-invalid", "JSON cut by the shell", "--hf-overrides", "{rope_theta:"),
    serve(
        "json-key-unknown", "flag-value-invalid", "a key that does not exist", "--compilation-config", '{"levle": 3}'
    ),
    serve("limit-mm-json-broken", "flag-value-invalid", "JSON cut", "--limit-mm-per-prompt", '{"image": '),
    serve(
        "config-file-missing", "flag-value-invalid", "a config file that is not there", "--config", "/srv/absent.yaml"
    ),
    serve(
        "kv-dtype-cpu", "", "a KV cache dtype that the CPU lacks is taken", "--kv-cache-dtype", "nvfp4", healthy=True
    ),
    Case("positional-model", "model-argument-misplaced", "a positional model with the module", ("MODEL", *QUICK), API),
    Case(
        "wrong-entrypoint",
        "entrypoint-wrong",
        "the demo server with a flag of the other",
        ("--model", "MODEL", "--api-key", "k"),
        "vllm.entrypoints.api_server",
    ),
    serve(
        "batched-tokens-small",
        "batched-tokens-too-few",
        "a batch smaller than the context",
        "--no-enable-chunked-prefill",
        "--max-num-batched-tokens",
        "256",
    ),
    serve(
        "batched-tokens-below-seqs",
        "batched-tokens-too-few",
        "fewer batched tokens than sequences",
        "--max-num-batched-tokens",
        "16",
        "--max-num-seqs",
        "64",
    ),
    serve(
        "context-beyond-model",
        "context-above-model-limit",
        "more than the model's positions",
        "--max-model-len",
        "100000",
    ),
    serve("tensor-parallel-not-dividing", "heads-not-divisible", "9 heads on 2 ranks", "--tensor-parallel-size", "2"),
    serve("ranks-beyond-numa", "cpu-binding-wrong", "3 ranks on one NUMA node", "--tensor-parallel-size", "3"),
    serve(
        "ray-missing",
        "ray-unreachable",
        "Ray asked for and not installed",
        "--distributed-executor-backend",
        "ray",
        "--tensor-parallel-size",
        "3",
    ),
    serve("attention-backend", "", "a CUDA back end on the CPU", "--attention-backend", "FLASHINFER"),
    serve("quantization-mismatch", "quant-format-mismatch", "AWQ for a checkpoint without it", "--quantization", "awq"),
    serve(
        "quantization-no-weights",
        "quant-format-mismatch",
        "bitsandbytes without its package",
        "--quantization",
        "bitsandbytes",
    ),
    serve(
        "load-format-missing",
        "dependency-unmet",
        "a loader whose package is not there",
        "--load-format",
        "runai_streamer",
    ),
    serve(
        "tracing-missing",
        "dependency-unmet",
        "tracing without OpenTelemetry",
        "--otlp-traces-endpoint",
        "http://127.0.0.1:4317",
    ),
    serve(
        "kv-connector-unknown",
        "flag-value-invalid",
        "a connector that does not exist",
        "--kv-transfer-config",
        '{"kv_connector": "NoSuch", "kv_role": "kv_both"}',
    ),
    serve(
        "tool-parser-unknown",
        "parser-unknown",
        "a parser that does not exist",
        "--enable-auto-tool-choice",
        "--tool-call-parser",
        "llama9_json",
    ),
    serve("tool-choice-half", "flags-conflict", "automatic tool choice without a parser", "--enable-auto-tool-choice"),
    serve(
        "reasoning-parser-unknown",
        "parser-unknown",
        "a parser that does not exist",
        "--reasoning-parser",
        "deepthought",
    ),
    serve(
        "chat-template-missing",
        "flag-value-invalid",
        "a template file that is not there",
        "--chat-template",
        "/models/absent.jinja",
    ),
    serve(
        "lora-path-missing",
        "lora-adapter-missing",
        "an adapter that is not there",
        "--enable-lora",
        "--lora-modules",
        "a=/models/absent-adapter",
    ),
    serve(
        "lora-rank",
        "lora-rank-too-high",
        "an adapter of rank 64 where 16 is the most",
        "--enable-lora",
        "--lora-modules",
        "a=MODEL/adapter",
        prepare=m.adapter,
    ),
    serve(
        "lora-rank-not-allowed",
        "flag-value-invalid",
        "a rank that is none of the choices",
        "--enable-lora",
        "--max-lora-rank",
        "24",
    ),
    serve(
        "speculative-unknown",
        "flag-value-invalid",
        "a method that does not exist",
        "--speculative-config",
        '{"method": "oracle", "num_speculative_tokens": 3}',
    ),
    serve(
        "speculative-no-model",
        "flags-conflict",
        "EAGLE without a draft model",
        "--speculative-config",
        '{"method": "eagle", "num_speculative_tokens": 3}',
    ),
    serve(
        "speculative-no-count",
        "flags-conflict",
        "n-gram without a count",
        "--speculative-config",
        '{"method": "ngram", "prompt_lookup_max": 4}',
    ),
    serve(
        "speculative-draft-missing",
        "speculative-draft-mismatch",
        "a draft that is not there",
        "--speculative-config",
        '{"model": "/models/absent-draft", "num_speculative_tokens": 3}',
    ),
    serve(
        "speculative-vocabulary",
        "speculative-draft-mismatch",
        "a draft of another vocabulary",
        "--speculative-config",
        '{"model": "MODEL-draft", "num_speculative_tokens": 3}',
        prepare=lambda model: m.both(
            m.small("LlamaForCausalLM", "llama", vocab_size=1000), m.without("chat_template.jinja")
        )(m.copy(model, model.parent / "demo-draft")),
    ),
    serve(
        "ssl-file-missing",
        "flag-value-invalid",
        "TLS with files that are not there",
        "--ssl-keyfile",
        "/srv/absent.key",
        "--ssl-certfile",
        "/srv/absent.crt",
    ),
    serve(
        "port-privileged",
        "address-not-bindable",
        "port 80 as an ordinary user",
        "--port",
        "80",
        nobody=True,
    ),
    serve("port-out-of-range", "flag-value-invalid", "a port above 65535", "--port", "99999"),
    serve("host-not-ours", "address-not-bindable", "an address of another machine", "--host", "203.0.113.9"),
    serve("port-taken", "port-taken", "a port on which somebody listens", "--port", "18399", prepare=hold_port),
)

MODEL_FILES = (
    serve("model-path-missing", "model-not-found", "a directory that is not there", model="/models/absent"),
    serve("model-relative", "model-not-found", "a relative path that is no directory", model="models/absent/deep"),
    serve(
        "model-without-config",
        "model-not-found",
        "a directory without config.json",
        prepare=m.without("config.json"),
    ),
    serve(
        "model-config-broken",
        "model-config-invalid",
        "config.json cut in the middle",
        prepare=m.text("config.json", '{"architectures": ["LlamaForCausalLM"], "hidden'),
    ),
    serve(
        "model-config-lfs",
        "model-config-invalid",
        "config.json is an LFS pointer",
        prepare=m.text("config.json", m.LFS_POINTER),
    ),
    serve(
        "hub-offline",
        "hub-offline",
        "a hub id while the hub is switched off",
        model="acme/llama-8b",
        env={"HF_HUB_OFFLINE": "1"},
    ),
    serve(
        "hub-unreachable",
        "hub-offline",
        "a hub that refuses connections",
        model="acme/llama-8b",
        env={"HF_ENDPOINT": "http://127.0.0.1:9"},
        wait_s=60,
    ),
    serve(
        "hub-name-unresolved",
        "hub-offline",
        "a hub whose name is not found",
        model="acme/llama-8b",
        env={"HF_ENDPOINT": "http://hub.invalid"},
        wait_s=60,
    ),
    serve(
        "hub-proxy-dead",
        "hub-offline",
        "a proxy that does not answer",
        model="acme/llama-8b",
        env={"HTTPS_PROXY": "http://127.0.0.1:9"},
        wait_s=60,
    ),
    serve(
        "tokenizer-missing",
        "tokenizer-unloadable",
        "no tokenizer files",
        prepare=m.without("tokenizer.json", "tokenizer_config.json"),
    ),
    serve(
        "tokenizer-broken",
        "tokenizer-unloadable",
        "tokenizer.json cut",
        prepare=m.text("tokenizer.json", '{"version": "1.0", "trunc'),
    ),
    serve(
        "tokenizer-lfs",
        "weights-lfs-pointer",
        "tokenizer.json is an LFS pointer",
        prepare=m.text("tokenizer.json", m.LFS_POINTER),
    ),
    serve(
        "tokenizer-class-unknown",
        "tokenizer-unloadable",
        "a tokenizer class that nobody has",
        prepare=m.edit("tokenizer_config.json", tokenizer_class="NoSuchTokenizer"),
    ),
    serve(
        "tokenizer-path-missing",
        "tokenizer-unloadable",
        "a tokenizer path that is not there",
        "--tokenizer",
        "/models/absent-tokenizer",
    ),
    serve("weights-truncated", "weights-incomplete", "half of the weights", prepare=m.truncated),
    serve(
        "weights-lfs",
        "weights-lfs-pointer",
        "the weights are an LFS pointer",
        prepare=m.text("model.safetensors", m.LFS_POINTER),
    ),
    serve("weights-missing", "weights-incomplete", "no weights", prepare=m.without("model.safetensors")),
    serve("weights-shape", "weights-mismatch", "a config of another size", prepare=m.edit(intermediate_size=1024)),
    serve("weights-name", "weights-mismatch", "a config of more layers", prepare=m.edit(num_hidden_layers=32)),
    serve(
        "architecture-unknown",
        "model-not-in-vllm",
        "an architecture that vLLM lacks",
        prepare=m.edit(architectures=["NoSuchForCausalLM"]),
    ),
    serve(
        "architecture-absent",
        "model-not-in-vllm",
        "no architecture in config.json",
        prepare=m.edit(architectures=None),
    ),
    serve(
        "model-type-unknown",
        "transformers-too-old",
        "a model type that Transformers lacks",
        prepare=m.edit(model_type="llama9"),
    ),
    serve(
        "config-key-missing",
        "model-config-invalid",
        "a needed key is missing",
        prepare=m.edit(num_attention_heads="nine"),
    ),
    serve(
        "rope-broken",
        "model-config-invalid",
        "rope scaling without its factor",
        prepare=m.edit(rope_parameters={"rope_type": "yarn"}),
    ),
    serve(
        "remote-code",
        "trust-remote-code-missing",
        "a model with code of its own",
        prepare=m.edit(model_type="own", auto_map={"AutoConfig": "configuration_own.OwnConfig"}),
    ),
    serve(
        "quantization-method-unknown",
        "quant-format-mismatch",
        "a method that vLLM lacks",
        prepare=m.edit(quantization_config={"quant_method": "magic", "bits": 4}),
    ),
    serve(
        "quantization-fp8-cpu",
        "quant-format-mismatch",
        "FP8 weights on a CPU",
        prepare=m.edit(quantization_config={"quant_method": "fp8", "activation_scheme": "dynamic"}),
    ),
    serve(
        "gguf-short",
        "gguf-file-unusable",
        "a GGUF file that ends after its header",
        model="MODEL/short.gguf",
        prepare=m.broken_gguf,
    ),
    serve("gguf-none", "gguf-file-unusable", "a file that is no GGUF", model="MODEL/none.gguf", prepare=m.broken_gguf),
    serve("gguf-absent", "model-not-found", "a GGUF path that is not there", model="MODEL/absent.gguf"),
    serve(
        "template-syntax",
        "flag-value-invalid",
        "a template with an error",
        "--chat-template",
        "MODEL/t.jinja",
        *SERVED,
        prepare=m.text("t.jinja", "{% for m in messages %}{{ m.content "),
        during=asks(chat),
    ),
)

HOST = (
    serve("env-value", "variable-invalid", "a word for a number", env={"VLLM_CPU_KVCACHE_SPACE": "lots"}),
    serve(
        "env-choice",
        "variable-invalid",
        "a value that is none of the choices",
        env={"VLLM_WORKER_MULTIPROC_METHOD": "thread"},
    ),
    serve("env-log-level", "variable-invalid", "a log level that does not exist", env={"VLLM_LOGGING_LEVEL": "LOUD"}),
    serve("env-threads", "cpu-binding-wrong", "a core that is not there", env={"VLLM_CPU_OMP_THREADS_BIND": "512-515"}),
    serve(
        "env-port", "variable-invalid", "the address of a Kubernetes service", env={"VLLM_PORT": "tcp://10.0.0.1:8000"}
    ),
    serve("no-openmp", "shared-library-missing", "without Intel's OpenMP", env={"LD_PRELOAD": "UNSET"}),
    serve("kv-too-large", "cpu-kv-space-wrong", "more KV space than memory", env={"VLLM_CPU_KVCACHE_SPACE": "500"}),
    serve(
        "kv-too-small",
        "kv-too-small-for-context",
        "KV space for less than one request",
        "--kv-cache-memory-bytes",
        "4M",
        "--max-model-len",
        "8192",
    ),
    serve("kv-none", "no-kv-blocks", "KV space for not one block", "--kv-cache-memory-bytes", "1K"),
    serve("files-few", "process-limit-too-low", "a limit of 64 open files", before=limit(resource.RLIMIT_NOFILE, 64)),
    serve(
        "processes-few",
        "process-limit-too-low",
        "a limit of 40 processes",
        before=in_pids_cgroup(40),
    ),
    serve("address-space", "oom-host-ram", "6 GiB of address space", before=limit(resource.RLIMIT_AS, 6 << 30)),
    serve("memory-cgroup", "oom-host-ram", "a control group of 1,200 MiB", before=in_cgroup(1200)),
    serve("memory-cgroup-small", "oom-host-ram", "a control group of 500 MiB", before=in_cgroup(500)),
    serve("shm-small", "shm-too-small", "/dev/shm of 64 KiB", shell="mount -t tmpfs -o size=64k none /dev/shm"),
    serve("shm-absent", "shm-too-small", "/dev/shm read-only", shell="mount -t tmpfs -o ro none /dev/shm"),
    serve(
        "tmp-full",
        "disk-full",
        "/tmp on a full disk",
        shell="mount -t tmpfs -o size=4k none /tmp; head -c 100000 /dev/zero > /tmp/full; true",
    ),
    serve(
        "cache-full",
        "disk-full",
        "a cache of 64 KiB",
        env={"VLLM_CACHE_ROOT": "/mnt/cache"},
        shell="mount -t tmpfs -o size=64k none /mnt",
    ),
    serve(
        "cache-readonly",
        "cache-not-writable",
        "a cache that cannot be written",
        nobody=True,
        prepare=lambda model: (model.parent / "home").mkdir(0o555),
    ),
    serve(
        "model-permission",
        "weights-incomplete",
        "weights of another user",
        nobody=True,
        prepare=lambda model: os.chmod(m.own(model, "model.safetensors"), 0),
    ),
    serve(
        "user-unknown",
        "cache-not-writable",
        "a user id without a name",
        shell="mount --bind /dev/null /etc/passwd",
        env={"HOME": "UNSET", "USER": "UNSET"},
    ),
    serve(
        "prometheus-directory",
        "cache-not-writable",
        "a metrics directory that is not there",
        "--api-server-count",
        "2",
        env={"PROMETHEUS_MULTIPROC_DIR": "/srv/absent"},
    ),
)

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
        "hang",
        "SIGSTOP to EngineCore",
        *SERVED,
        during=kill("VLLM::EngineCore", signal.SIGSTOP),
        settle_s=5,
    ),
    serve(
        "killed-in-load",
        "killed-by-kernel",
        "SIGKILL to EngineCore while it starts",
        shell='(sleep 22; pkill -9 -f "^VLLM::EngineCore" -s $$) & true',
        wait_s=60,
    ),
    serve(
        "requests-refused",
        "chat-template-missing",
        "a model without a chat template",
        *SERVED,
        prepare=m.without("chat_template.jinja"),
        during=asks(chat),
    ),
    serve(
        "requests-tools",
        "tool-parser-missing",
        "tools sent to a server without a parser",
        *SERVED,
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
            lambda s: s.ask("/v1/chat/completions", _hello(), "wrong"),
            lambda s: s.ask("/v1/chat/completions", _hello() | {"max_tokens": 4096}, "secret-of-the-server"),
            lambda s: s.ask("/v1/completions", {"model": "demo", "prompt": "word " * 900}, "secret-of-the-server"),
            lambda s: s.ask("/v1/completions", {"model": "gpt-4", "prompt": "a"}, "secret-of-the-server"),
            lambda s: s.ask("/chat/completions", _hello(), "secret-of-the-server"),
            lambda s: s.ask("/v1/chat/completions", b"no json", "secret-of-the-server"),
            lambda s: s.ask(
                "/v1/chat/completions",
                _hello()
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
            lambda s: s.ask("/v1/completions", _hello(), "secret-of-the-server"),
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
                _hello() | {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]},
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

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]

DUMMY = ("--load-format", "dummy", *SERVED)


def well(kind: str, happened: str, *more: str, **rest: object) -> Case:
    """A start that works, with a few requests and a stop by SIGTERM."""
    return serve(f"well-{kind}", "", happened, *more, healthy=True, **{"during": asks(chat, complete, chat), **rest})


def complete(server: Server) -> str:
    """One text completion."""
    return server.ask("/v1/completions", {"model": "demo", "prompt": "Once", "max_tokens": 4})


def embed(server: Server) -> str:
    """One vector."""
    return server.ask("/v1/embeddings", {"model": "demo", "input": "a word"})


def load(server: Server) -> str:
    """Thirty-two requests at once, of which every fourth is left by its client."""
    with ThreadPoolExecutor(16) as pool:
        body = _hello() | {"max_tokens": 24}
        waits = [60.0 if i % 4 else 0.3 for i in range(32)]
        answers = list(pool.map(lambda wait: server.ask("/v1/chat/completions", body, timeout=wait), waits))
    return f"{sum(a.startswith('200') for a in answers)} of 32 answered"


HEALTHY = (
    well("plain", "nothing special", *SERVED),
    well("debug", "log level DEBUG", *SERVED, env={"VLLM_LOGGING_LEVEL": "DEBUG"}),
    well("warning", "log level WARNING", *SERVED, env={"VLLM_LOGGING_LEVEL": "WARNING"}),
    well("load", "32 requests at once, some left by their clients", *SERVED, during=asks(load, chat)),
    well(
        "small-batch",
        "two sequences and a small cache under load",
        *SERVED,
        "--max-num-seqs",
        "2",
        "--kv-cache-memory-bytes",
        "64M",
        during=asks(load),
    ),
    well("requests-logged", "requests in the log", *SERVED, "--enable-log-requests", during=asks(chat, load)),
    well("no-prefix-cache", "prefix cache off", *SERVED, "--no-enable-prefix-caching"),
    well("key", "an API key", *SERVED, "--api-key", "k", during=asks(chat)),
    well("names", "several names", "--served-model-name", "demo", "b", "c"),
    well(
        "tools",
        "a tool parser",
        *SERVED,
        "--enable-auto-tool-choice",
        "--tool-call-parser",
        "hermes",
        during=asks(lambda s: chat(s, tools=TOOLS)),
    ),
    well(
        "ngram",
        "n-gram speculation",
        *SERVED,
        "--speculative-config",
        '{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}',
    ),
    well(
        "lora",
        "an adapter",
        *SERVED,
        "--enable-lora",
        "--max-lora-rank",
        "64",
        "--lora-modules",
        "a=MODEL/adapter",
        prepare=m.adapter,
    ),
    well("pooling", "a text model that embeds", *SERVED, "--runner", "pooling", during=asks(embed, chat)),
    well("compiled", "torch.compile", *SERVED, "--no-enforce-eager", "--max-num-seqs", "4", wait_s=280),
    well("two-api-servers", "two API servers", *SERVED, "--api-server-count", "2"),
    well("qwen2", "another architecture", *DUMMY, prepare=m.small("Qwen2ForCausalLM", "qwen2")),
    well("gemma", "another architecture", *DUMMY, prepare=m.small("GemmaForCausalLM", "gemma", head_dim=32)),
    well(
        "gpt2",
        "another architecture",
        *DUMMY,
        prepare=m.small(
            "GPT2LMHeadModel",
            "gpt2",
            n_embd=128,
            n_head=4,
            n_layer=2,
            n_positions=2048,
            n_ctx=2048,
            activation_function="gelu_new",
            layer_norm_epsilon=1e-5,
        ),
    ),
    well(
        "opt",
        "another architecture",
        *DUMMY,
        prepare=m.small(
            "OPTForCausalLM",
            "opt",
            ffn_dim=256,
            word_embed_proj_dim=128,
            do_layer_norm_before=True,
            activation_function="relu",
            enable_bias=True,
        ),
    ),
    well(
        "mixtral",
        "a mixture of experts",
        *DUMMY,
        prepare=m.small("MixtralForCausalLM", "mixtral", num_local_experts=4, num_experts_per_tok=2),
    ),
    well(
        "bert",
        "an embedding model",
        *DUMMY,
        prepare=m.small(
            "BertModel",
            "bert",
            layer_norm_eps=1e-12,
            type_vocab_size=2,
            hidden_act="gelu",
            position_embedding_type="absolute",
        ),
        during=asks(embed),
    ),
    well("interrupted", "an interrupt while it serves", *SERVED, during=kill("vllm", signal.SIGINT)),
)

CASES = (*COMMAND_LINE, *MODEL_FILES, *HOST, *SERVING, *HEALTHY)
