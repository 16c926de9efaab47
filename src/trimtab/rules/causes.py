"""The causes of failure that the doctor can name: a closed list; a rule names one of it, and is judged by it.

A cause is what a person has to change, not the line that a log ends with: two wordings of one fault are one cause, two
faults behind one wording are two. Each comment says what the cause is and where it ends. Where several hold, the one
counts without which the others would not have happened.
"""

from __future__ import annotations

from enum import StrEnum


class Cause(StrEnum):
    """Why a vLLM server failed, or a client of one."""

    # Memory of the GPU. By what vLLM was doing when an allocation failed, then by what its own accounting refused.

    # An allocation fails while weights are read or made (also online quantisation); no profile run has begun.
    OOM_WEIGHTS = "oom-weights"
    # It fails in the forward pass that measures the peak, of text or of images; weights are loaded.
    OOM_PROFILE = "oom-profile"
    # It fails in the sampler's or pooler's dry run of max_num_seqs requests; not in a graph's capture.
    OOM_SAMPLER_WARMUP = "oom-sampler-warmup"
    # It fails while the KV cache itself is made: its size was given, or others took memory after the profile run.
    OOM_KV_CACHE = "oom-kv-cache"
    # It fails while CUDA graphs are captured, after the KV cache has taken its share.
    OOM_GRAPH_CAPTURE = "oom-graph-capture"
    # It fails while requests are served, after the server was ready.
    OOM_RUNTIME = "oom-runtime"
    # After weights and profile run nothing is left for the KV cache: zero or negative blocks, whatever the context.
    NO_KV_BLOCKS = "no-kv-blocks"
    # There are blocks, but fewer than one request of max_model_len needs.
    KV_TOO_SMALL_FOR_CONTEXT = "kv-too-small-for-context"
    # The server runs, but its KV cache holds too few of the requests it gets: they are preempted again and again.
    KV_TOO_SMALL_FOR_LOAD = "kv-too-small-for-load"
    # Free memory at the start is below the share asked for, as another or a left-over process holds the card.
    GPU_MEMORY_HELD_BY_OTHER = "gpu-memory-held-by-other"
    # The same check fails on a card nobody else holds: the share is above what an idle card leaves free.
    UTILIZATION_TOO_HIGH = "utilization-too-high"
    # Free memory was not less after the profile run than before it: somebody freed memory meanwhile, or it is shared.
    GPU_MEMORY_CHANGED_WHILE_PROFILING = "gpu-memory-changed-while-profiling"
    # A hybrid or state-space model has fewer state blocks than max_num_seqs; its KV cache itself is long enough.
    MAMBA_BLOCKS_TOO_FEW = "mamba-blocks-too-few"
    # One image, video or sound is longer than the encoder's cache; the count of items is within its limit.
    ENCODER_CACHE_TOO_SMALL = "encoder-cache-too-small"

    # Memory of the host, disk, shared memory.

    # Host RAM or the container's limit ran out, and the log says so (cannot allocate, MemoryError, oom-kill).
    OOM_HOST_RAM = "oom-host-ram"
    # Swap space for KV blocks (per rank, up to 0.17) asks for too large a part of host RAM; the ranks are right.
    SWAP_SPACE_TOO_LARGE = "swap-space-too-large"
    # V0 ran out of swap space while serving; the start was fine.
    SWAP_SPACE_EXHAUSTED = "swap-space-exhausted"
    # The platform, WSL above all, refuses pinned host memory or unified addressing; RAM is not short.
    PINNED_MEMORY_REFUSED = "pinned-memory-refused"
    # /dev/shm is too small for NCCL or the workers' queues: bus error, no space in a shared segment.
    SHM_TOO_SMALL = "shm-too-small"
    # No space on the disk of cache, download or log; not /dev/shm.
    DISK_FULL = "disk-full"
    # A cache or home directory cannot be written by this user; space is not the matter.
    CACHE_NOT_WRITABLE = "cache-not-writable"
    # Open files, processes, locked memory or threads are limited too low (ulimit, cgroup pids).
    PROCESS_LIMIT_TOO_LOW = "process-limit-too-low"

    # Shapes and lengths.

    # Tensor parallel size does not divide attention heads, KV heads or vocabulary; nor pipeline stages the layers.
    HEADS_NOT_DIVISIBLE = "heads-not-divisible"
    # A rank's share of a quantised weight does not end on a group, block or packed word; the heads divide.
    QUANT_BLOCKS_NOT_DIVISIBLE = "quant-blocks-not-divisible"
    # More ranks, or a device index beyond, than GPUs are seen, whatever line it shows in; in Ray it is a Ray cause.
    RANKS_MORE_THAN_GPUS = "ranks-more-than-gpus"
    # max_model_len is above what the model's config allows; memory is not the matter.
    CONTEXT_ABOVE_MODEL_LIMIT = "context-above-model-limit"
    # max_num_batched_tokens is below the context (no chunked prefill), max_num_seqs, or a hybrid model's block.
    BATCHED_TOKENS_TOO_FEW = "batched-tokens-too-few"

    # The card, its driver, and what was compiled for them.

    # The card is older than vLLM's builds go, whatever the model.
    CAPABILITY_TOO_LOW = "capability-too-low"
    # The card lacks the number format of the model's dtype (bfloat16 before Ampere); another --dtype works.
    DTYPE_NOT_ON_GPU = "dtype-not-on-gpu"
    # The card lacks what this quantisation's kernels need; other weights work.
    QUANT_CAPABILITY_TOO_LOW = "quant-capability-too-low"
    # The wheel holds no kernel for this card ("no kernel image"): built for others, older or newer.
    KERNEL_IMAGE_MISSING = "kernel-image-missing"
    # The attention backend chosen does not do this head size, KV type, block size, card or model.
    ATTENTION_BACKEND_UNSUPPORTED = "attention-backend-unsupported"
    # The driver is older than the CUDA of torch, or than the toolkit of one extension (PTX, unsupported toolchain).
    DRIVER_TOO_OLD = "driver-too-old"
    # A shared library (CUDA, libnuma, ...) is not found, or the C library is too old for a binary (GLIBC_, GLIBCXX_).
    SHARED_LIBRARY_MISSING = "shared-library-missing"
    # Kernels could not be built at run time: no compiler, nvcc, headers or ninja, or a wrong CUDA_HOME.
    JIT_BUILD_FAILED = "jit-build-failed"
    # torch.compile itself failed (Dynamo, Inductor, a cached artefact); the compilers are there.
    TORCH_COMPILE_FAILED = "torch-compile-failed"
    # The process sees no GPU outside a container: no card, driver or permission, or a CUDA wheel on a CPU host.
    GPU_NOT_VISIBLE = "gpu-not-visible"
    # A container was started without its GPUs or the NVIDIA runtime.
    CONTAINER_WITHOUT_GPU = "container-without-gpu"
    # A MIG slice or a UUID in CUDA_VISIBLE_DEVICES is not understood, or its memory is read from the parent.
    MIG_DEVICE = "mig-device"
    # Native Windows, macOS or another system that the wheels are not for.
    OPERATING_SYSTEM_UNSUPPORTED = "operating-system-unsupported"
    # A kernel left its memory (illegal access) or failed its own check (device-side assert); the trace may mislead.
    ILLEGAL_MEMORY_ACCESS = "illegal-memory-access"
    # cuBLAS, cuDNN or another CUDA library refused a call, and memory is not said to be short.
    CUDA_LIBRARY_ERROR = "cuda-library-error"
    # The card failed: Xid, ECC, fallen off the bus, NVLink down.
    GPU_FAULT = "gpu-fault"

    # Installation.

    # A compiled extension does not match the installed torch (undefined symbol): vLLM's own, flash-attn or another.
    EXTENSION_ABI_MISMATCH = "extension-abi-mismatch"
    # A Python package that this needs is absent or in a version that does not fit; Transformers has its own causes.
    DEPENDENCY_UNMET = "dependency-unmet"
    # Transformers is older than the model or its files: model type unknown, or saved by a newer one.
    TRANSFORMERS_TOO_OLD = "transformers-too-old"
    # Transformers is newer than this vLLM bears (an attribute is gone).
    TRANSFORMERS_TOO_NEW = "transformers-too-new"
    # The model's class is in vLLM's list, but its import failed; the reason is not told, else that is the cause.
    MODEL_CLASS_IMPORT_FAILED = "model-class-import-failed"
    # An option, method or model works only on another engine generation (V0, V1, V2 runner) of this version.
    ENGINE_GENERATION = "engine-generation"

    # The model and its files.

    # This vLLM has no code for the architecture or its quantised form: too old for it, or never supported.
    MODEL_NOT_IN_VLLM = "model-not-in-vllm"
    # The repository carries its own code, and nobody allowed it.
    TRUST_REMOTE_CODE_MISSING = "trust-remote-code-missing"
    # No such directory, config.json, repository, revision or file, here or on the hub; refusals are HUB_GATED.
    MODEL_NOT_FOUND = "model-not-found"
    # config.json or a companion is broken or contradicts itself (rope, quantisation section, overrides).
    MODEL_CONFIG_INVALID = "model-config-invalid"
    # A generation model was asked to embed, or an embedding model to generate (--runner, --convert, --task).
    MODEL_TASK_MISMATCH = "model-task-mismatch"
    # A weight file is the text pointer of Git LFS.
    WEIGHTS_LFS_POINTER = "weights-lfs-pointer"
    # Weight files are absent, cut or damaged; none is a pointer.
    WEIGHTS_INCOMPLETE = "weights-incomplete"
    # Names or shapes of tensors do not fit the model's class; the files are whole.
    WEIGHTS_MISMATCH = "weights-mismatch"
    # --quantization or --load-format contradicts the checkpoint or each other, or this vLLM lacks the method.
    QUANT_FORMAT_MISMATCH = "quant-format-mismatch"
    # This quantisation cannot be split over ranks at all, whatever the sizes.
    QUANT_NOT_SHARDABLE = "quant-not-shardable"
    # The hub refuses: gated or private, licence not accepted, token absent or wrong.
    HUB_GATED = "hub-gated"
    # The hub cannot be reached or cuts the download, or offline mode is on and the cache does not hold the model.
    HUB_OFFLINE = "hub-offline"
    # Tokenizer files are absent or broken, or of another class or --tokenizer-mode; not by the age of Transformers.
    TOKENIZER_UNLOADABLE = "tokenizer-unloadable"
    # The model has no chat template, or it lies where this version does not look.
    CHAT_TEMPLATE_MISSING = "chat-template-missing"
    # The GGUF file's architecture or tensors have no map in this version.
    GGUF_ARCHITECTURE_UNSUPPORTED = "gguf-architecture-unsupported"
    # The GGUF file itself: split, cut, of an unknown type, a directory of several.
    GGUF_FILE_UNUSABLE = "gguf-file-unusable"
    # The adapter's rank is above --max-lora-rank.
    LORA_RANK_TOO_HIGH = "lora-rank-too-high"
    # The adapter is not found or not loaded, or LoRA is off.
    LORA_ADAPTER_MISSING = "lora-adapter-missing"
    # The adapter does not fit: modules, base model, vocabulary, a kind (DoRA, bias) that vLLM does not do.
    LORA_UNSUPPORTED = "lora-unsupported"
    # This method of speculation is not done by this version, engine or combination of options.
    SPECULATIVE_UNSUPPORTED = "speculative-unsupported"
    # The draft does not fit the target: vocabulary, heads, width, ranks, missing files.
    SPECULATIVE_DRAFT_MISMATCH = "speculative-draft-mismatch"

    # The launch command and its environment.

    # A flag that once was: refused now, or taken and without effect.
    FLAG_REMOVED = "flag-removed"
    # A flag that this vLLM never had: misspelt, or newer than it.
    FLAG_UNKNOWN = "flag-unknown"
    # A flag's value is refused: type, range, choice, JSON; names of parsers are PARSER_UNKNOWN.
    FLAG_VALUE_INVALID = "flag-value-invalid"
    # Flags exclude each other, or one lacks its companion; each alone is fine.
    FLAGS_CONFLICT = "flags-conflict"
    # The model is given as the entry point does not take it: by position, or by --model, or not at all.
    MODEL_ARGUMENT_MISPLACED = "model-argument-misplaced"
    # The demo server (vllm.entrypoints.api_server) or another wrong entry point was started.
    ENTRYPOINT_WRONG = "entrypoint-wrong"
    # An environment variable that once was: nothing reads it.
    VARIABLE_REMOVED = "variable-removed"
    # A variable's value is refused (also its default, here), or its name misspelt.
    VARIABLE_INVALID = "variable-invalid"
    # The port, of the API or between processes, is in use.
    PORT_TAKEN = "port-taken"
    # The address cannot be bound: not of this host, or not permitted.
    ADDRESS_NOT_BINDABLE = "address-not-bindable"
    # Tools are sent to a server without --enable-auto-tool-choice and --tool-call-parser.
    TOOL_PARSER_MISSING = "tool-parser-missing"
    # A tool or reasoning parser of this name is not in this version.
    PARSER_UNKNOWN = "parser-unknown"
    # The tool or reasoning parser is another model's: it fails, or calls and thoughts come as text.
    PARSER_WRONG_FOR_MODEL = "parser-wrong-for-model"

    # Several GPUs, several hosts.

    # NCCL's system call failed and the log does not say on what; told shared memory is SHM_TOO_SMALL.
    NCCL_SYSTEM_ERROR = "nccl-system-error"
    # NCCL itself: a version with a defect, two versions mixed, or its library not found.
    NCCL_VERSION = "nccl-version"
    # A collective did not end in its time (watchdog), after it had worked.
    NCCL_TIMEOUT = "nccl-timeout"
    # Peer access or InfiniBand cannot be used on this host: the start stands still or fails in NCCL's first call.
    P2P_UNUSABLE = "p2p-unusable"
    # vLLM's own all-reduce kernel fails; NCCL works.
    CUSTOM_ALL_REDUCE = "custom-all-reduce"
    # Ranks never meet: Gloo or NCCL on a wrong interface or loopback, master address, firewall, an absent node.
    RENDEZVOUS_FAILED = "rendezvous-failed"
    # The Ray placement group vLLM runs in is smaller than its ranks.
    RAY_PLACEMENT_TOO_SMALL = "ray-placement-too-small"
    # Ray waits for GPUs or nodes that the cluster lacks or others hold.
    RAY_RESOURCES_LACKING = "ray-resources-lacking"
    # Ray is not installed, not running, not reached, or of another version on some node.
    RAY_UNREACHABLE = "ray-unreachable"
    # Ray lost an actor or node; what killed it, where told, is the cause instead.
    RAY_WORKER_DIED = "ray-worker-died"

    # The CPU backend.

    # The processor lacks instructions that the build needs (AVX-512, AVX2, AMX): illegal instruction, missing operator.
    CPU_INSTRUCTIONS_MISSING = "cpu-instructions-missing"
    # VLLM_CPU_KVCACHE_SPACE is too small, or too large for host RAM.
    CPU_KV_SPACE_WRONG = "cpu-kv-space-wrong"
    # A CUDA build, or parts of one, runs on a CPU host, and got past device detection.
    CPU_BUILD_MIXED = "cpu-build-mixed"
    # Threads cannot be bound as asked, or NUMA nodes and ranks do not agree.
    CPU_BINDING_WRONG = "cpu-binding-wrong"

    # Ends and stand-stills without a nearer cause.

    # SIGKILL from outside (exit 137, -9), and nothing says why; where memory is named, OOM_HOST_RAM.
    KILLED_BY_KERNEL = "killed-by-kernel"
    # A segmentation fault, abort or illegal instruction; a bus error is SHM_TOO_SMALL.
    SEGFAULT = "segfault"
    # The process lives and makes no progress (RPC timed out, no token), and no collective is to blame.
    HANG = "hang"
    # Load or compile takes longer than a probe, front end or orchestrator waits; it does make progress.
    START_TIMEOUT = "start-timeout"
    # Only the engine's death is in the log: its first error is missing or cut off.
    ENGINE_DEAD_UNEXPLAINED = "engine-dead-unexplained"
    # The prefix cache cannot hit: prompts shorter than a (hybrid model's) block, or what differs comes first.
    PREFIX_CACHE_WITHOUT_HITS = "prefix-cache-without-hits"

    # A client's key and address.

    # 401: no key came with the request.
    KEY_MISSING = "key-missing"
    # 401: a key came in the right header, and it is another one.
    KEY_WRONG = "key-wrong"
    # 401: the key is right but for a blank, line end or quotation mark.
    KEY_WITH_BLANK = "key-with-blank"
    # 401: the key came in another header or without "Bearer".
    KEY_HEADER_WRONG = "key-header-wrong"
    # 404: the base URL lacks /v1.
    PATH_WITHOUT_V1 = "path-without-v1"
    # 404: /v1 twice, or where the client adds its own (Claude Code).
    PATH_V1_DOUBLED = "path-v1-doubled"
    # 404: a slash twice.
    PATH_SLASH_DOUBLED = "path-slash-doubled"
    # The base URL is no URL: scheme, host or port cannot be read.
    BASE_URL_MALFORMED = "base-url-malformed"
    # 404 or 405: no such route or method on this server or for this model's task; the base URL is right.
    ROUTE_UNKNOWN = "route-unknown"
    # 404: the route is right, the model's name is not one of /v1/models.
    MODEL_ID_UNKNOWN = "model-id-unknown"
    # Nobody listens at host and port: not started, dead, or another port.
    CONNECTION_REFUSED = "connection-refused"
    # localhost inside a container is the container.
    LOCALHOST_INSIDE_CONTAINER = "localhost-inside-container"
    # The name does not resolve, or packets do not come through: firewall, bound to loopback, port not published.
    HOST_UNREACHABLE = "host-unreachable"
    # Something answers on the port that is no vLLM, in JSON or another protocol.
    NOT_VLLM_PORT = "not-vllm-port"
    # A web page, redirect or log-in page came where JSON was awaited; a gateway's time-out page is GATEWAY_TIMEOUT.
    HTML_INSTEAD_OF_JSON = "html-instead-of-json"
    # A client or proxy read an error or nothing as an answer ("reading 'choices'"); the error is one layer above.
    ANSWER_WITHOUT_CHOICES = "answer-without-choices"
    # The answer is whole and well formed, and holds no text.
    ANSWER_EMPTY = "answer-empty"
    # The client speaks TLS to a plain port, or plain text to a TLS port.
    TLS_TO_PLAIN_PORT = "tls-to-plain-port"
    # The certificate is not trusted, expired or for another name.
    CERTIFICATE_REFUSED = "certificate-refused"
    # A web page of another origin is not allowed (CORS).
    ORIGIN_REFUSED = "origin-refused"
    # http_proxy and its likes send local requests to a proxy.
    PROXY_ENVIRONMENT = "proxy-environment"
    # A reverse proxy keeps the stream back and hands it on in lumps.
    PROXY_BUFFERING = "proxy-buffering"
    # The stream ends in the middle; no time-out is named.
    STREAM_CUT = "stream-cut"
    # 504 or 502 of a gateway: the answer took longer than it waits.
    GATEWAY_TIMEOUT = "gateway-timeout"
    # The client's own time-out (and its retries), without a gateway.
    CLIENT_TIMEOUT = "client-timeout"
    # 503 or 429: the server or its gateway is up but loading, full or limiting.
    SERVER_UNAVAILABLE = "server-unavailable"
    # The client asks for a log-in (OAuth) instead of using the key.
    OAUTH_PROMPT = "oauth-prompt"

    # A client's request.

    # 400: prompt, or prompt and max_tokens, is longer than the context.
    CONTEXT_EXCEEDED = "context-exceeded"
    # 413: the request has more bytes than a proxy takes; its tokens are not the matter.
    REQUEST_BODY_TOO_LARGE = "request-body-too-large"
    # 400: a field that this server's request model does not take.
    UNKNOWN_FIELD = "unknown-field"
    # 400: a known field's value is refused; roles, tools, schemas and length have causes of their own.
    FIELD_VALUE_REFUSED = "field-value-refused"
    # 400: this tool_choice or tool list is refused though a parser is set.
    TOOL_CHOICE_REFUSED = "tool-choice-refused"
    # 400: the request model knows no such role here (system or developer in /v1/messages).
    MESSAGE_ROLE_REFUSED = "message-role-refused"
    # The template or Mistral's validator refuses the order of roles: not alternating, system not first or repeated.
    MESSAGE_ORDER_REFUSED = "message-order-refused"
    # The template is unreadable or fails on a message's content (arguments as text); the order is right.
    TEMPLATE_ERROR = "template-error"
    # More images, videos or sounds than --limit-mm-per-prompt allows.
    MULTIMODAL_LIMIT = "multimodal-limit"
    # An image or sound is not of the model's kinds, or not fetched, permitted or decoded; counts are within limits.
    MULTIMODAL_INPUT_REFUSED = "multimodal-input-refused"
    # 400: schema, regex or grammar holds what the structured-output backend does not do.
    SCHEMA_UNSUPPORTED = "schema-unsupported"
    # The generated tokens left the grammar, and the request was ended.
    STRUCTURED_OUTPUT_ABORTED = "structured-output-aborted"
    # The client library is too old for the server's form of answer or API.
    CLIENT_TOO_OLD = "client-too-old"
