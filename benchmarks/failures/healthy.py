"""Starts and loads that go well."""

from __future__ import annotations

import signal

import models as m
from case import DUMMY, SERVED, TOOLS, asks, chat, embed, kill, load, well

HEALTHY = (
    well(
        "older-files",
        "files as Transformers 4 writes them, for older engines",
        *SERVED,
        prepare=m.edit(
            "tokenizer_config.json",
            tokenizer_class="PreTrainedTokenizerFast",
            backend=None,
            is_local=None,
            local_files_only=None,
        ),
    ),
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
