"""A model for programs whose own prompts are long: two layers, 131,072 positions, and always the same short answer.

Its layers are random and add next to nothing, so that each token follows from the one before: the words of the answer
come one after the other behind a line break (where the template lets it begin), and after any other token it ends.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from trimtab.supervisor.environments import Engine

ANSWER = "Hello from two random layers"
POSITIONS = 131_072
_CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "vocab_size": 49152,
    "max_position_embeddings": POSITIONS,
    "rms_norm_eps": 1e-5,
    "rope_theta": 1e6,
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
    "bos_token_id": 1,
    "eos_token_id": 2,
}
# Tools are told and calls written in Hermes' form, as most models with tools do it.
_TEMPLATE = """\
{%- if tools %}{{ '<|im_start|>system\\nTools:\\n' }}{% for tool in tools %}{{ tool | tojson }}{{ '\\n' }}{% endfor %}\
{{ 'Call one as <tool_call>{"name": ..., "arguments": {...}}</tool_call>.<|im_end|>\\n' }}{% endif %}\
{%- for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}{{ message.content or '' }}\
{%- for call in message.tool_calls or [] %}{{ '<tool_call>' + (call.function | tojson) + '</tool_call>' }}{% endfor %}\
{{ '<|im_end|>\\n' }}{% endfor %}\
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
_MAKE = """
import json, sys
import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer

folder, answer = sys.argv[1:]
config = json.load(open(folder + "/config.json"))
tokens = Tokenizer.from_file(folder + "/tokenizer.json").encode("\\n" + answer).ids
assert len(set(tokens)) == len(tokens) < 60, tokens
size, vocabulary, end = config["hidden_size"], config["vocab_size"], config["eos_token_id"]
draw = np.random.default_rng(0)
random = lambda *shape: draw.normal(0, 1e-3, shape).astype(np.float16)
embeddings, head = random(vocabulary, size), np.zeros((vocabulary, size), np.float16)
embeddings[:, 0], head[end, 0] = 1, 10
for at, (token, following) in enumerate(zip(tokens, tokens[1:]), start=1):
    embeddings[token, at], head[following, at] = 10, 10
norm = np.ones(size, np.float16)
whole = {"model.embed_tokens.weight": embeddings, "lm_head.weight": head, "model.norm.weight": norm}
width = config["head_dim"]
for layer in range(config["num_hidden_layers"]):
    name = f"model.layers.{layer}."
    whole |= {name + f"{at}_layernorm.weight": norm for at in ("input", "post_attention")}
    for part, rows in (("q", width * config["num_attention_heads"]), ("k", width), ("v", width)):
        whole[name + f"self_attn.{part}_proj.weight"] = random(rows, size)
    whole[name + "self_attn.o_proj.weight"] = random(size, width * config["num_attention_heads"])
    for part in ("gate", "up", "down"):
        whole[name + f"mlp.{part}_proj.weight"] = random(size, size)
save_file(whole, folder + "/model.safetensors", {"format": "pt"})
"""


def make_small_model(folder: Path, engine: Engine, tokenizer: Path) -> Path:
    """Write it to `folder`, with the tokenizer of the model in `tokenizer`."""
    folder.mkdir(parents=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((tokenizer / name).read_bytes())
    (folder / "config.json").write_text(json.dumps(_CONFIG))
    (folder / "chat_template.jinja").write_text(_TEMPLATE)
    subprocess.run([engine.python, "-c", _MAKE, folder, ANSWER], check=True, timeout=120)
    return folder
