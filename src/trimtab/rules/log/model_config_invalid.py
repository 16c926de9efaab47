"""The model's config.json, or a file beside it, is broken or contradicts itself.

What it does: looks for the words of Transformers and vLLM for a configuration that is no JSON, lacks a key, or holds
    one that does not fit: rope scaling above all.
Why it matters: the engine is built from this file; nothing was loaded.
How to fix: fetch the file again, or mend the key that the message names; for a value that was set by hand, look at
    --hf-overrides and --rope-scaling.
When to ignore: never; the configuration was refused.
Sources: transformers/configuration_utils.py, modeling_rope_utils.py; vllm/transformers_utils/config.py and
    vllm/model_executor/layers/rotary_embedding, vLLM 0.5 to 0.33.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.engine.logs import EntryKind
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import HUNCH, LIKELY, POSSIBLE, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    (
        r"for ModelConfig\s+Value error, (?:Expecting (?:value|property|'|,)|Extra data|Invalid control|Unterminated "
        r"string)"
    ),
    r"[Ii]t looks like the config file at '[^']+' is not a valid JSON file",
    r"rope_(?:scaling|parameters)`? ?(?:must|should) (?:be|have)|`?rope_(?:scaling|parameters)`?'s? \w+ field",
    r"[Mm]issing required keys in `rope_(?:scaling|parameters)`",
    r"Unknown RoPE scaling type|is not supported (?:for models )?with `?rope_(?:scaling|parameters)`?",
    r"Found conflicts between 'rope_type=",
    r"Unrecognized model in \S+ Should have a `?model_type`? key",
    r"StrictDataclass\w*Error|(?:Type v|V)alidation error for (?:field|validator|class)",
    (
        r"The model is an hybrid without a|speculators config|[Ll]egacy rope_type|does not have "
        r"`num_attention_heads`"
    ),
    (r"Could not determine the number of key-value|Couldn't determine number of kv heads|Failed to load " r"mistral '"),
    (r"Cannot find any of .{1,80} in the model's quantization config|Missing or invalid '\w+'.{0,12} in " r"\S*quant"),
    (
        r"Model quantization method is not specified in the config|Unsupported config format|Unknown ModelOpt "
        r"quant algo"
    ),
    r"entries must be in .* but got|`num_hidden_layers` \(\d+\) must be equal to the number of",
    r"hidden_size must be divisible by num_heads|`?embed_dim`? must be divisible by num_heads",
    r"(?:tokenizer|preprocessor|processor|generation)_config\.json'? is not a valid JSON",
    r"Found multiple config files for \w+|Unsupported quantization config found for",
)
HINTS = (
    (
        r"^KeyError: '(?:factor|rope_type|type|original_max_position_embeddings|short_factor|long_factor)'$|in "
        r"rope_(?:scaling|parameters)$"
    ),
    r"'?(?!(?:Speculative|Vllm|Engine|Parallel|Cache|Scheduler|Compilation|LoRA|Load|Device)Config)\b\w+Config'? "
    r"object has no attribute|not a valid JSON file",
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS, kinds=REFUSALS)
    found = (hit, SURE) if hit is not None else words.best(context, (POSSIBLE, HINTS))
    for code, confidence in ((PARSED, LIKELY), (ROPE, LIKELY)):
        framed = context.framed(code) if found is None else None
        if framed is not None and re.match(EXPECTED, framed.entry.text):
            found = framed, confidence
    if found is None and (guess := words.guessed(context, OF_CONFIG, CONFIG)):
        found = guess, HUNCH
    if found is None:
        return
    hit, confidence = found
    if NEWER in hit.entry.text:
        confidence = POSSIBLE
    said = words.said(hit) if hit.match.string == hit.entry.text else hit.entry.text[:200]
    yield context.finding(
        hit,
        msg(
            "the model's configuration is broken or contradicts itself: {said}",
            zh="模型的配置文件损坏或自相矛盾：{said}",
            said=said,
        ),
        confidence,
    )


NEWER = "`rope_scaling` must be a dictionary with"
"""Transformers before 4.43 knows two fields: it is older than the model, as a rule of its own says."""
OF_CONFIG = r"\w+Config\b.{0,60}(?:invalid|missing|must|unexpected keyword)|config\.json"
CONFIG = (
    r"transformers_utils[/\\]config|transformers[/\\](?:configuration_utils|modeling_rope)|"
    r"[/\\]configuration_\w+\.py"
)
REFUSALS = (EntryKind.EXCEPTION, EntryKind.ERROR)
"""Transformers warns in the same words of a configuration that it then takes."""
PARSED = r"_dict_from_json_file|get_config_dict|in get_config\b|load_config_dict|in parse$"
ROPE = r"in get_rope\b|rotary_embedding|_compute_\w+_parameters"
EXPECTED = r"(?:json\.decoder\.JSONDecodeError|KeyError|UnicodeDecodeError|TypeError|AssertionError)\b"


RULE = Rule(
    code="LOG203",
    name="model-config-invalid",
    severity=Severity.ERROR,
    summary=msg(
        "The model's config.json, or a file beside it, is broken or contradicts itself.",
        zh="模型的 config.json 或相关文件损坏或自相矛盾。",
    ),
    check=check,
    cause=Cause.MODEL_CONFIG_INVALID,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/transformers_utils/config.py",),
    bad=(
        Example("OSError: It looks like the config file at '/models/m/config.json' is not a valid JSON file.\n"),
        Example("ValueError: rope_scaling should have a 'rope_type' key\n"),
        Example(
            "ValueError: Unrecognized model in /models/m. Should have a `model_type` key in its config.json, "
            "or contain one of the following strings in its name: llama\n"
        ),
    ),
    good=(Example("INFO 11-30 03:43:16 [model.py:733] Resolved architecture: LlamaForCausalLM\n"),),
)
