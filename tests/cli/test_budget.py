"""`trimtab budget`: its report, its JSON, its exit codes and what it says of bad input."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.facts.test_gguf import small_llama
from trimtab.cli.main import run

CONFIGS = Path(__file__).parents[2] / "benchmarks" / "data" / "configs"
KEYS = {
    "schema", "model", "vllm", "gpu", "per_gpu", "ranks", "kv_cache_tokens", "num_gpu_blocks", "block_size",
    "max_concurrency", "max_model_len", "max_num_seqs", "max_num_batched_tokens", "longest_len", "verdict", "reasons",
    "assumptions",
}  # fmt: skip
TERMS = {"weights_gib", "non_torch_gib", "activation_peak_gib", "cuda_graph_gib", "kv_cache_gib", "headroom_gib"}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return put(tmp_path, json.loads((CONFIGS / "qwen2.5-7b.json").read_text()))


def put(directory: Path, config: object) -> Path:
    (directory / "config.json").write_text(json.dumps(config))
    return directory


def report(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = run(["budget", "--json", *words])
    return code, json.loads(capsys.readouterr().out)


def test_json_has_the_documented_keys(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = report(capsys, "--gpu", "2xH100-80", "--vllm", "0.26", "--", "vllm", "serve", str(model), "-tp", "2")
    assert code == 0
    assert set(found) == KEYS
    assert set(found["per_gpu"]) == TERMS
    assert found["schema"] == "trimtab.budget/1"
    assert found["gpu"] == {"name": "H100", "count": 2, "total_gib": 79.2}
    assert [r["rank"] for r in found["ranks"]] == [0, 1]
    assert found["verdict"] == "fits"


def test_text_shows_the_card_and_the_derivation(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["budget", "--gpu", "24GiB", "--vllm", "0.26", "--explain", "--", "vllm", "serve", str(model)]
    assert run(words) == 0
    shown = capsys.readouterr().out
    assert "█" in shown
    assert "KV cache: " in shown
    assert "requested - weights - non-torch" in shown


def test_every_verdict_but_fits_exits_with_one(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = report(capsys, "--gpu", "T4", "--vllm", "0.26", "--", "vllm", "serve", str(model))
    assert code == 1
    assert found["verdict"] != "fits"
    assert found["reasons"]


def test_the_container_names_the_version(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["docker", "run", "--gpus", "all", "vllm/vllm-openai:v0.10.2", "--model", str(model)]
    _, found = report(capsys, "--gpu", "H200", "--model-config", str(model), "--", *words)
    assert found["vllm"] == "0.10.2"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--max-model-len", "many"], "--max-model-len does not take 'many'"),
        (["--gpu-memory-utilization", "most"], "--gpu-memory-utilization does not take 'most'"),
        (["--speculative-config", "{"], "--speculative-config does not take '{'"),
    ],
)
def test_flags_that_are_no_numbers(
    model: Path, capsys: pytest.CaptureFixture[str], flags: list[str], said: str
) -> None:
    assert run(["budget", "--gpu", "H200", "--", "vllm", "serve", str(model), *flags]) == 2
    assert said in capsys.readouterr().err


def test_a_gpu_with_a_typo_names_the_nearest(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["budget", "--gpu", "H20O", "--", "vllm", "serve", str(model)]) == 2
    assert "H20" in capsys.readouterr().err


def test_too_few_cards(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["budget", "--gpu", "2xA10", "--", "vllm", "serve", str(model), "-tp", "4"]) == 2
    assert "needs 4 GPUs; 2 are given" in capsys.readouterr().err


def test_one_named_card_stands_for_as_many_as_are_asked_for(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, found = report(capsys, "--gpu", "A10", "--", "vllm", "serve", str(model), "-tp", "4")
    assert found["gpu"]["count"] == 4
    assert any("4 of that card" in a for a in found["assumptions"])


def test_an_automatic_length_is_cut_to_what_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = put(tmp_path, json.loads((CONFIGS / "llama-3.1-8b.json").read_text()))
    words = ["--gpu", "24GiB", "--vllm", "0.26", "--", "vllm", "serve", str(model), "--max-model-len"]
    _, native = report(capsys, *words, "131072")
    assert native["verdict"] == "kv_too_small_for_max_len"
    _, found = report(capsys, *words, "auto")
    assert found["max_model_len"] == native["longest_len"]
    assert found["verdict"] in ("fits", "unsafe_headroom")


def test_a_cut_that_vllm_refuses(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["budget", "--gpu", "8xA10", "--", "vllm", "serve", str(model), "-tp", "8"]) == 2
    assert "28 attention heads do not divide by --tensor-parallel-size 8" in capsys.readouterr().err


def test_replicas_need_cards_of_their_own(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["vllm", "serve", str(model), "-tp", "2", "--data-parallel-size", "2"]
    assert run(["budget", "--gpu", "2xH200", "--", *words]) == 2
    assert "needs 4 GPUs; 2 are given" in capsys.readouterr().err
    code, found = report(capsys, "--gpu", "4xH200", "--", *words)
    assert (code, len(found["ranks"])) == (0, 2)


def test_the_cpu_engine_refuses_a_cache_larger_than_the_host(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["VLLM_CPU_KVCACHE_SPACE=100000", "vllm", "serve", str(model)]
    code, found = report(capsys, "--gpu", "cpu", "--vllm", "0.26", "--", *words)
    assert code == 1
    assert found["verdict"] in ("free_memory_below_utilization", "oom_weights")


def test_an_unknown_architecture_is_not_guessed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = json.loads((CONFIGS / "qwen2.5-7b.json").read_text()) | {"architectures": ["NewForCausalLM"]}
    code, found = report(capsys, "--gpu", "H200", "--", "vllm", "serve", str(put(tmp_path, config)))
    assert code == 1
    assert found["verdict"] == "unknown"
    assert found["kv_cache_tokens"] is None
    assert found["per_gpu"]["weights_gib"] is None
    assert "NewForCausalLM" in found["reasons"][0]


@pytest.mark.parametrize("value", [-1, "abc", 10**12, [], 0])
def test_absurd_configs_end_in_a_message(tmp_path: Path, capsys: pytest.CaptureFixture[str], value: object) -> None:
    config = json.loads((CONFIGS / "qwen2.5-7b.json").read_text()) | {"hidden_size": value}
    assert run(["budget", "--gpu", "H200", "--", "vllm", "serve", str(put(tmp_path, config))]) in (1, 2)
    assert "Traceback" not in capsys.readouterr().err


def test_the_command_is_quick(model: Path) -> None:
    words = [sys.executable, "-m", "trimtab", "budget", "--json", "--gpu", "H200", "--", "vllm", "serve", str(model)]
    best = min(_seconds(words) for _ in range(3))
    assert best < 1.0  # 0.4 s on an idle machine; tests run beside others


def _seconds(words: list[str]) -> float:
    """Processor time of the command, which other processes lengthen less than the time on the wall."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=False, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_cards_without_memory_are_refused(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["budget", "--gpu", "sm_75", "--vllm", "0.26", "--", "vllm", "serve", str(model)]) == 2
    assert "does not tell how much memory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("described", "taken"),
    [
        ("Qwen3-14B AWQ", "Qwen/Qwen3-14B"),
        ("Qwen2.5-1.5B (merged fine-tune)", "Qwen/Qwen2.5-1.5B"),
        ("microsoft/phi-4 (bnb 4-bit on the fly)", "microsoft/phi-4"),
    ],
)
def test_a_model_that_is_described_is_taken_for_the_catalogue_s(
    described: str, taken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = report(capsys, "--gpu", "H100", "--vllm", ">=0.20", "--", "vllm", "serve", described)
    assert (code, found["vllm"]) == (0, "0.20.0")
    assert any(f"the model {taken}" in a and described in a for a in found["assumptions"])


def test_a_description_of_no_model_is_no_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["budget", "--gpu", "H100", "--vllm", "0.26", "--", "vllm", "serve", "our model (v2)"]) == 2
    assert "neither a directory nor a model id" in capsys.readouterr().err


def gguf_file(directory: Path, data: bytes) -> str:
    (directory / "model.gguf").write_bytes(data)
    return str(directory / "model.gguf")


def test_a_gguf_file_is_sized_by_its_own_header(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = gguf_file(tmp_path, small_llama())
    with open(named, "r+b") as file:
        file.truncate(512 << 20)
    code, found = report(capsys, "--gpu", "A10", "--vllm", "0.26", "--", "vllm", "serve", named)
    assert (code, found["model"]) == (0, "LlamaForCausalLM")
    assert found["per_gpu"]["weights_gib"] > 0


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"GGUX" + bytes(40), "not GGUF"), (b"", "model.gguf"), (small_llama()[:60], "model.gguf")],
)
def test_a_gguf_file_that_is_none(tmp_path: Path, data: bytes, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    named = gguf_file(tmp_path, data)
    assert run(["budget", "--gpu", "A10", "--vllm", "0.26", "--", "vllm", "serve", named]) == 2
    assert said in capsys.readouterr().err


def test_a_directory_of_one_gguf_file_is_that_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open(gguf_file(tmp_path, small_llama()), "r+b") as file:
        file.truncate(512 << 20)
    (tmp_path / "mmproj-f16.gguf").write_bytes(b"GGUF")
    code, found = report(capsys, "--gpu", "24GiB", "--", "vllm", "serve", str(tmp_path), "--max-model-len", "128")
    assert (code, found["model"]) == (0, "LlamaForCausalLM")
    (tmp_path / "other.gguf").write_bytes(small_llama())
    assert run(["budget", "--gpu", "24GiB", "--", "vllm", "serve", str(tmp_path)]) == 2
    assert "name one of them" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--gpu-memory-utilization 1.5", "does not take 1.5: above 0, up to 1"),
        ("--gpu-memory-utilization 0", "above 0"),
        ("--gpu-memory-utilization nan", "does not take 'nan'"),
        ("--cpu-offload-gb inf", "does not take 'inf'"),
        ("--cpu-offload-gb -3", "0 and more"),
        ("--max-num-seqs 0", "1 and more"),
        ("--max-model-len 0", "1 and more, or -1"),
        ("--tensor-parallel-size -1", "--tensor-parallel-size does not take -1"),
        ("--data-parallel-size 0", "1 and more"),
        ("--kv-cache-memory-bytes 0", "1 and more"),
        ("--kv-cache-dtype int3", "does not take int3: auto"),
        ("--dtype float128", "does not take float128"),
        ("--decode-context-parallel-size 3", "does not divide by"),
        ("-tp 4 --decode-context-parallel-size 2", "each of 4 key-value heads lies on 1 of 4 tensor ranks"),
        ('--speculative-config {"method":"ngram","num_speculative_tokens":-3}', "1 and more"),
    ],
)
def test_values_that_vllm_refuses(model: Path, flags: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["budget", "--gpu", "8xH100", "--vllm", "0.26", "--", "vllm", "serve", str(model), *flags.split()]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "a_token"),
    [
        ("nvfp4", 2 * 4 * 72),
        ("int4_per_token_head", 2 * 4 * 68),
        ("fp8_per_token_head", 2 * 4 * 132),
        ("fp8", 2 * 4 * 128),
    ],
)
def test_narrow_caches_count_their_scales(
    model: Path, name: str, a_token: int, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (
        "--gpu",
        "H100",
        "--vllm",
        "0.33",
        "--explain",
        "--",
        "vllm",
        "serve",
        str(model),
        "--kv-cache-dtype",
        name,
    )
    assert run(["budget", *words]) == 0
    shown = capsys.readouterr().out
    assert f"28 layers full, 16 x {a_token:,} B a block" in shown
    assert "blocks: " in shown
    assert "at once: " in shown


def test_a_model_that_is_not_known_has_no_derivation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = {"architectures": ["NoSuchForCausalLM"], "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100,
              "num_attention_heads": 4}  # fmt: skip
    assert run(["budget", "--gpu", "H100", "--explain", "--", "vllm", "serve", str(put(tmp_path, config))]) == 1
    assert "derivation" not in capsys.readouterr().out
