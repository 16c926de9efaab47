# %% [markdown]
# Trimtab from Python: will it fit, is my command right, why did it die, does it serve?
# Each cell runs alone after the first. No GPU and no network are needed.

# %%
import sys

import trimtab

# %% A launch that fits two cards, and why each flag stands there
made = trimtab.plan("Qwen/Qwen2.5-7B-Instruct", gpu="2xA10", context=16384, concurrency=8)
print(made.command.command_line())
print(f"{made.verdict}: holds {made.holds:.1f} requests of {made.wish.request_tokens:,} tokens")
for why in made.why:
    print(f"  {why.flag}: {why.reason}")

# %% Does a command that someone else wrote fit the card?
command = "vllm serve Qwen/Qwen2.5-14B-Instruct --max-model-len 32768 --gpu-memory-utilization 0.9"
found = trimtab.budget(command, gpu="A10")
rank = found.tightest
print(f"{found.verdict}: weights {rank.weights.value:.2f} GiB, KV cache {rank.kv_cache.value:.2f} GiB")
print(*found.reasons, sep="\n")

# %% What is wrong with it?
linted = trimtab.lint(["vllm", "serve", "Qwen/Qwen2.5-7B-Instruct", "--swap-space", "4"], vllm="0.26")
for finding in linted.report.findings:
    print(f"{finding.line}:{finding.column} {finding.rule.code} {finding.message}")

# %% Why did it die?
log = """\
INFO 05-01 10:00:00 [api_server.py:1043] vLLM API server version 0.9.2
ERROR 05-01 10:00:09 [core.py:515] ValueError: No available memory for the cache blocks. \
Try increasing `gpu_memory_utilization` when initializing the engine.
"""
diagnosis = trimtab.diagnose(log, exit_status=1)
if diagnosis.cause:
    print(f"{diagnosis.cause.rule.name}: {diagnosis.cause.message}")

# %% Does it serve? Give the URL and the key of a server as arguments.
if len(sys.argv) > 1:
    outcome = trimtab.verify(sys.argv[1], key=sys.argv[2] if len(sys.argv) > 2 else None, concurrency=4)
    for criterion in outcome.criteria:
        print(criterion.name, criterion.verdict)

# %% What goes wrong is one kind of exception, with the next step
try:
    trimtab.plan("Qwen/Qwen2.5-7B-Instruct", gpu="2xA1O")
except trimtab.TrimtabError as error:
    print(f"{error}\n  -> {error.hint}")
