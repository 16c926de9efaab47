"""Which generation of vLLM's engine a flag acts on: who reads its value, and who refuses it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

from .records import Record

# Modules of the V0 engine; one that a module of V1 imports is shared all the same.
V0_ONLY = (
    "core/", "worker/", "engine/llm_engine.py", "engine/async_llm_engine.py", "engine/output_processor/",
    "engine/multiprocessing/", "engine/metrics.py", "spec_decode/", "attention/backends/",
    "transformers_utils/tokenizer_group/",
)  # fmt: skip
# Where a value is taken in, checked and passed on: reading it there is no use of it.
PASSED_ON = ("engine/arg_utils.py", "config.py", "config/", "benchmarks/", "usage/")
# Configurations that keep a value under another name.
RENAMED = {"enable_chunked_prefill": ("chunked_prefill_enabled",)}
# Read by V0 alone in 0.10 and kept without it: where nobody reads them now, they do nothing.
LEFT_BY_V0 = ("swap_space", "override_attention_dtype", "max_long_partial_prefills", "max_num_partial_prefills")
# Functions that name what a newer generation does not do: it is then not used, or refuses where it was demanded.
ORACLES = {
    "V1": (
        "engine/arg_utils.py",
        ("_is_v1_supported_oracle", "_check_feature_supported"),
        ("_raise_or_fallback", "_warn_or_fallback", "_raise_unsupported_error"),
    ),
    "V2 runner": ("config/vllm.py", ("_get_v2_model_runner_unsupported_features",), ("append",)),
}


def engines(root: Path, v1_is_default: bool) -> list[str]:
    """The generations that this version has, the default one first."""
    package = root / "vllm"
    old = package / "engine" / "llm_engine.py"
    found = ["V0"] if old.is_file() and "\nclass LLMEngine" in old.read_text(encoding="utf-8") else []
    if (package / "v1" / "engine" / "core.py").is_file():
        found.insert(0 if v1_is_default else len(found), "V1")
    return found


def meanings(root: Path, generations: list[str], flags: dict[str, Record]) -> dict[str, Record]:
    """By flag: `engine`, where one of two generations alone reads it; `unsupported`, the newer ones that refuse it."""
    package = root / "vllm"
    found: dict[str, Record] = {}
    for name, flag in flags.items():
        key = flag.get("dest") or name.lstrip("-").replace("-", "_")
        entry: Record = {}
        if len(generations) == 2 and (alone := _alone(package, key)):
            entry["engine"] = alone
        elif generations == ["V1"] and key in LEFT_BY_V0 and not _read_by(package, key):
            entry["engine"] = "V0"
        refusing = [newer for newer in ORACLES if key in _guarded(package, newer)]
        if refusing:
            entry["unsupported"] = refusing
        if entry:
            found[name] = entry
    return found


def _alone(package: Path, key: str) -> str | None:
    if key in _decided_early(package):
        return None
    readers = _read_by(package, key)
    return next(iter(readers)) if len(readers) == 1 and readers <= {"V0", "V1"} else None


def _read_by(package: Path, key: str) -> set[str]:
    names = {key, f"{key}_bytes", *_fields(package).get(key, ()), *RENAMED.get(key, ())}
    return set().union(*(_readers(package).get(name, set()) for name in names))


@cache
def _decided_early(package: Path) -> set[str]:
    """Names that arg_utils itself decides by (`lora_config = ... if self.enable_lora else None`)."""
    tests = (n.test for n in ast.walk(_tree(package / "engine" / "arg_utils.py")) if isinstance(n, ast.IfExp))
    return {name for test in tests for name in _names(test)}


@cache
def _readers(package: Path) -> dict[str, set[str]]:
    """Attribute -> who reads it: "V0", "V1" or "shared"."""
    found: dict[str, set[str]] = {}
    imported = _imported_by_v1(package)
    for file in package.rglob("*.py"):
        path = file.relative_to(package).as_posix()
        if path.startswith(PASSED_ON):
            continue
        owner = "V1" if path.startswith("v1/") else "shared"
        if path.startswith(V0_ONLY) and path not in imported:
            owner = "V0"
        for name in _read_in(file):
            found.setdefault(name, set()).add(owner)
    return found


def _imported_by_v1(package: Path) -> set[str]:
    modules = set()
    for file in (package / "v1").rglob("*.py"):
        for node in ast.walk(_tree(file)):
            if isinstance(node, ast.ImportFrom) and node.module:
                modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    paths = (m.removeprefix("vllm.").replace(".", "/") for m in modules)
    return {f"{path}.py" for path in paths} | {f"{path}/__init__.py" for path in paths}


def _read_in(file: Path) -> Iterator[str]:
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield node.attr
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr" and len(node.args) > 1:
            yield str(getattr(node.args[1], "value", ""))


@cache
def _fields(package: Path) -> dict[str, set[str]]:
    """EngineArgs' name -> the names under which configurations get it (`delay_factor=self.scheduler_delay_factor`)."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(_tree(package / "engine" / "arg_utils.py")):
        value = node.value if isinstance(node, ast.keyword) and node.arg else None
        if isinstance(value, ast.Attribute) and getattr(value.value, "id", "") == "self":
            found.setdefault(value.attr, set()).add(str(node.arg))
    return found


@cache
def _guarded(package: Path, newer: str) -> frozenset[str]:
    """Names that the tests of one oracle look at."""
    path, functions, refusals = ORACLES[newer]
    if not (package / path).is_file():
        return frozenset()
    found: set[str] = set()
    for node in ast.walk(_tree(package / path)):
        if isinstance(node, ast.FunctionDef) and node.name in functions:
            for guard in ast.walk(node):
                if isinstance(guard, ast.If) and _refuses(guard, refusals):
                    found |= _names(_feature(guard.test))
    return frozenset(found | {dest for dest, fields in _fields(package).items() if fields & found})


def _feature(test: ast.expr) -> ast.expr:
    """Of `a is not None and b and c`: b, the feature; what follows says when it counts."""
    if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.And):
        return test
    return next((part for part in test.values if not ast.unparse(part).endswith("is not None")), test)


def _names(node: ast.expr) -> set[str]:
    words = (n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "") for n in ast.walk(node))
    return {word for word in words if word}


def _refuses(guard: ast.If, refusals: tuple[str, ...]) -> bool:
    calls = [n for part in (guard.test, *guard.body) for n in ast.walk(part) if isinstance(n, ast.Call)]
    return any(ast.unparse(call.func).rpartition(".")[2] in refusals for call in calls)


@lru_cache(maxsize=2)
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))
