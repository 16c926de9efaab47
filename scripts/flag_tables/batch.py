"""The defaults of max_num_seqs and max_num_batched_tokens, which vLLM chooses by card, memory and usage context."""

from __future__ import annotations

import ast
from types import SimpleNamespace
from typing import Any

from .parsers import Platform
from .records import Record
from .slices import Sources

TOKENS, SEQS = "default_max_num_batched_tokens", "default_max_num_seqs"
STORED = {TOKENS, SEQS, f"{TOKENS}_tpu", "device_memory", "device_name", "is_gb10"}
ENTRIES = {"server": "OPENAI_API_SERVER", "offline": "LLM_CLASS"}


def rows(made: Sources, build: str) -> list[Record]:
    """One row for each entry, memory threshold and exceptional card; none where the version does not choose."""
    if not v1_is_default(made):
        seqs = _seqs_of_v0(made)
        return [{"entry": entry, "from_gib": 0, "max_num_seqs": seqs} for entry in ENTRIES] if seqs else []
    lines = _lines(made)
    found = []
    for entry, context in ENTRIES.items():
        before: Record = {}
        for gib in _thresholds(lines):
            plain = _evaluate(made, lines, Platform(build, gib), context)
            if plain != before:
                found.append({"entry": entry, "from_gib": gib, **plain})
            for card in _cards(lines):
                other = _evaluate(made, lines, Platform(build, gib, card), context)
                if other != plain:
                    found.append({"entry": entry, "from_gib": gib, "card": card, **other})
            before = plain
    return found


def v1_is_default(made: Sources) -> bool:
    """Whether the V1 engine runs where nothing is said: the rows here are its defaults, the V0 engine had others."""
    known = made.get("vllm.envs", "environment_variables")
    return bool(known["VLLM_USE_V1"]()) if "VLLM_USE_V1" in known else bool(_lines(made))


def _seqs_of_v0(made: Sources) -> int | None:
    """What `EngineArgs.__post_init__` sets max_num_seqs to on the V0 engine, None where the parser has a default."""
    module = made.module("vllm.engine.arg_utils")
    assert module is not None
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "self.max_num_seqs":
            space = {"self": SimpleNamespace(), "envs": SimpleNamespace(VLLM_USE_V1=False)}
            exec(compile(ast.Module([node], []), "arg_utils.py", "exec"), space)
            return int(space["self"].max_num_seqs)
    return None


def _lines(made: Sources) -> list[ast.stmt]:
    """The statements that choose, out of the function that holds them."""
    module = made.module("vllm.engine.arg_utils")
    assert module is not None
    for function in ast.walk(module.tree):
        if isinstance(function, ast.FunctionDef):
            lines = [s for s in function.body if isinstance(s, ast.Assign | ast.If | ast.Try) and _stores(s)]
            if any(TOKENS in _stores(s) for s in lines):
                return lines
    return []


def _stores(statement: ast.stmt) -> set[str]:
    names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return names & STORED


def _thresholds(lines: list[ast.stmt]) -> list[int]:
    found = {0}
    for line in lines:
        for node in ast.walk(line):
            if isinstance(node, ast.BinOp) and ast.unparse(node.right) == "GiB_bytes":
                found.add(int(ast.literal_eval(node.left)))
    return sorted(found)


def _cards(lines: list[ast.stmt]) -> list[str]:
    """Names looked for in the device's name, and the one known by its compute capability."""
    found = set()
    for line in lines:
        for node in ast.walk(line):
            if isinstance(node, ast.Compare) and ast.unparse(node.comparators[0]).startswith("device_name"):
                found |= {str(n.value) for n in [node.left] if isinstance(n, ast.Constant)}
            if isinstance(node, ast.Name) and node.id == "is_gb10":
                found.add("gb10")
    return sorted(found)


def _evaluate(made: Sources, lines: list[ast.stmt], platform: Platform, context: str) -> Record:
    usage = made.get("vllm.usage.usage_lib", "UsageContext")
    space: dict[str, Any] = {
        "current_platform": platform, "UsageContext": usage, "GiB_bytes": 2**30, "world_size": 1, "device_name": "",
        "self": SimpleNamespace(pipeline_parallel_size=1, tensor_parallel_size=1),
    }  # fmt: skip
    body = [s for line in lines for s in _without_imports(line)]
    exec(compile(ast.Module(body, []), "arg_utils.py", "exec"), space)
    made_row = {}
    for flag, name in (("max_num_seqs", SEQS), ("max_num_batched_tokens", TOKENS)):
        value = space.get(name)
        value = value.get(getattr(usage, context)) if isinstance(value, dict) else value
        if value is not None:
            made_row[flag] = value
    return made_row


class _NoImports(ast.NodeTransformer):
    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node)


def _without_imports(line: ast.stmt) -> list[ast.stmt]:
    return [_NoImports().visit(line)]
