"""The same prompts to one server by `trimtab bench` and by `vllm bench serve` in turn: do they tell the same figures?

    python benchmarks/against_vllm_bench.py --vllm ENGINE/bin/vllm --model DIR [--together] [--rounds 5] [--rows FILE]

The engine of `--vllm` serves DIR without its prefix cache. The prompts are vLLM's random data set, written to a file by
its own code from the same seed that its bench gets, and replayed by ours; which tool begins a round changes. With
--together both ask at once, each with its own --concurrency: what else the machine does then slows both alike. Both
speak /v1/chat/completions, so the totals of prompt tokens must be equal. Of each figure: the median over the rounds,
the spread of either tool over its own rounds, and the 95% interval of the paired difference.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

EXPORT = """
import json, sys
from vllm.benchmarks.datasets import RandomDataset
from vllm.tokenizers import get_tokenizer
model, out, count, prompt, answer, seed = sys.argv[1:]
data = RandomDataset(random_seed=int(seed), dataset_path=None)
sampled = data.sample(get_tokenizer(model), int(count), input_len=int(prompt), output_len=int(answer))
with open(out, "w") as file:
    for one in sampled:
        file.write(json.dumps({"prompt": one.prompt, "output_tokens": one.expected_output_len}) + "\\n")
"""
# Our name, how to find it in our summary, its name in vLLM's result file and what to divide that by.
FIGURES = {
    "output tokens/s": (("output_tokens_s",), "output_throughput", 1),
    **{
        f"{name} {share}": (
            (name.lower(), share, "value"),
            f"{theirs}_{name.lower() if name != 'E2E' else 'e2el'}_ms",
            1e3,
        )
        for name in ("TTFT", "TPOT", "ITL", "E2E")
        for share, theirs in (("mean", "mean"), ("p50", "median"), ("p99", "p99"))
    },
}


def main() -> None:
    """Serve, ask in turn, compare."""
    words = _words()
    with tempfile.TemporaryDirectory() as folder:
        prompts = Path(folder) / "prompts.jsonl"
        python = words.vllm.parent / "python"
        sizes = map(str, (words.requests, words.input, words.output, words.seed))
        subprocess.run([python, "-c", EXPORT, words.model, prompts, *sizes], check=True, env=_quiet())
        with serving(words) as url:
            rounds = []
            for number in range(words.rounds + 1):  # the first warms up and is left out
                ask = together if words.together else in_turn
                rounds.append(ask(words, url, Path(folder), prompts, number))
                print(f"round {number}: {json.dumps(rounds[-1])}", file=sys.stderr, flush=True)
                if words.rows is not None and number:
                    with words.rows.open("a") as file:
                        told = {"model": Path(words.model).name, "round": number, "load": round(os.getloadavg()[0], 1)}
                        told |= {"first": next(iter(rounds[-1])), "together": words.together}
                        file.write(json.dumps({**told, **rounds[-1]}) + "\n")
    print(table(rounds[1:]))


def _words() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--dummy", action="store_true", help="random weights, for a DIR without any")
    defaults = {"rounds": 5, "requests": 40, "concurrency": 8, "input": 128, "output": 32, "seed": 7}
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser.parse_args()


def _quiet() -> dict[str, str]:
    return {**os.environ, "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}


@contextmanager
def serving(words: argparse.Namespace) -> Iterator[str]:
    """The server's URL; it and all its processes end with the block."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    argv = [words.vllm, "serve", words.model, "--served-model-name", "demo", "--port", str(port), "--host", "127.0.0.1"]
    argv += ["--max-model-len", "2048", "--no-enable-prefix-caching", "--enforce-eager"]
    argv += ["--load-format", "dummy"] if words.dummy else []
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True, env=_quiet())
        try:
            _await(child, f"http://127.0.0.1:{port}")
            yield f"http://127.0.0.1:{port}"
        finally:
            for number in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, number)
                with suppress(subprocess.TimeoutExpired):
                    child.wait(15)


def _await(child: subprocess.Popen[bytes], url: str) -> None:
    ends = time.monotonic() + 300
    while time.monotonic() < ends:
        if child.poll() is not None:
            raise SystemExit(f"vLLM ended with {child.returncode}")
        with suppress(urllib.error.URLError, OSError), urllib.request.urlopen(f"{url}/health", timeout=2):
            return
        time.sleep(0.5)
    raise SystemExit("vLLM was not ready after 300 s")


def in_turn(words: argparse.Namespace, url: str, folder: Path, prompts: Path, number: int) -> dict[str, Any]:
    """Both tools, one after the other."""
    tools = [("trimtab", lambda: ours(words, url, prompts)), ("vllm", lambda: theirs(words, url, folder))]
    if number % 2:
        tools.reverse()
    return {name: tool() for name, tool in tools}


def together(words: argparse.Namespace, url: str, folder: Path, prompts: Path, number: int) -> dict[str, Any]:
    """Both at once: ours begins when the server has the first request of vLLM's, which takes longer to start."""
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(theirs, words, url, folder)
        while not other.done() and not asked(url):
            time.sleep(0.1)
        own = ours(words, url, prompts)
        return {"trimtab": own, "vllm": other.result()}


def asked(url: str) -> bool:
    """Whether the server has a request now."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return any(float(line.split()[-1]) for line in lines if line.startswith("vllm:num_requests_running"))


def ours(words: argparse.Namespace, url: str, prompts: Path) -> dict[str, float]:
    """`trimtab bench` once, without a warm-up: that would take prompts of the file for it."""
    argv = [sys.executable, "-m", "trimtab", "bench", url, "--replay", str(prompts), "--json"]
    argv += ["--concurrency", str(words.concurrency), "--warmup", "0"]
    found = json.loads(subprocess.run(argv, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    values = {"prompt_tokens": found["prompt_tokens"], "finished": found["finished"]}
    for name, (path, _, _) in FIGURES.items():
        value = found
        for part in path:
            value = value[part]
        values[name] = value
    return values


def theirs(words: argparse.Namespace, url: str, folder: Path) -> dict[str, float]:
    """`vllm bench serve` once."""
    argv = [words.vllm, "bench", "serve", "--backend", "openai-chat", "--endpoint", "/v1/chat/completions"]
    argv += ["--base-url", url, "--model", "demo", "--tokenizer", words.model, "--dataset-name", "random"]
    argv += ["--random-input-len", str(words.input), "--random-output-len", str(words.output), "--ignore-eos"]
    argv += ["--num-prompts", str(words.requests), "--max-concurrency", str(words.concurrency), "--temperature", "0"]
    argv += ["--seed", str(words.seed), "--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "99"]
    argv += ["--save-result", "--result-dir", str(folder), "--result-filename", "theirs.json"]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_quiet())
    found = json.loads((folder / "theirs.json").read_text())
    values = {"prompt_tokens": found["total_input_tokens"], "finished": found["completed"]}
    return values | {name: found[key] / unit for name, (_, key, unit) in FIGURES.items()}


def table(rounds: list[dict[str, dict[str, float]]]) -> str:
    """Markdown: medians, spreads and the paired difference."""
    source = random.Random(1)
    lines = ["| | trimtab | spread | vllm | spread | difference (95%) |", "| --- | --- | --- | --- | --- | --- |"]
    for name in ("prompt_tokens", "finished", *FIGURES):
        a, b = [r["trimtab"][name] for r in rounds], [r["vllm"][name] for r in rounds]
        ratios = [x / y - 1 for x, y in zip(a, b, strict=True)]
        means = sorted(sum(source.choices(ratios, k=len(ratios))) / len(ratios) for _ in range(4000))
        unit = 1 if name in ("prompt_tokens", "finished", "output tokens/s") else 1000
        spread = [f"{100 * (max(v) - min(v)) / median(v):.1f}%" for v in (a, b)]
        difference = f"{100 * sum(ratios) / len(ratios):+.1f}% ({100 * means[100]:+.1f} to {100 * means[3899]:+.1f})"
        lines.append(
            f"| {name} | {unit * median(a):.1f} | {spread[0]} | {unit * median(b):.1f} | {spread[1]} | {difference} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
