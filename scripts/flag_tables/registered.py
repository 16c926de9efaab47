"""Names that plug-in registries of vLLM hold (tool-call and reasoning parsers), read from where they are registered."""

from __future__ import annotations

import ast
from pathlib import Path

from .slices import Sources

FOLDERS = {
    "--tool-call-parser": ("vllm/tool_parsers", "vllm/entrypoints/openai/tool_parsers"),
    "--reasoning-parser": ("vllm/reasoning", "vllm/entrypoints/openai/reasoning_parsers"),
}


LISTS = {
    "--quantization": (("vllm.model_executor.layers.quantization", "QUANTIZATION_METHODS"),),
    "--load-format": (("vllm.model_executor.model_loader", "_LOAD_FORMAT_TO_MODEL_LOADER"),),
    "--attention-backend": (
        ("vllm.v1.attention.backends.registry", "AttentionBackendEnum"),
        ("vllm.attention.backends.registry", "AttentionBackendEnum"),
    ),
}


def parsers(root: Path) -> list[tuple[str, list[str]]]:
    """Flag and the parsers that may be named for it."""
    return [(flag, names(root, flag)) for flag in FOLDERS]


def lists(made: Sources) -> list[tuple[str, list[str]]]:
    """Flag and the names of a list or enum that its value is looked up in after parsing."""
    found = []
    for flag, places in LISTS.items():
        for module, name in places:
            holder = made.module(module)
            if holder is not None and name in holder.definitions:
                value = getattr(holder, name)
                words = list(value.__members__) if isinstance(value, type) else list(value)
                found.append((flag, sorted(str(word) for word in words)))
    return found


def names(root: Path, flag: str) -> list[str]:
    """The registered names that `flag` may take, sorted; none when this version has no such registry."""
    found: set[str] = set()
    for folder in FOLDERS[flag]:
        for file in sorted((root / folder).glob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                found |= _lazy(node) | _decorated(node)
    return sorted(found)


def _lazy(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
        target = ast.unparse(node.targets[0])
        if target.endswith("_TO_REGISTER"):
            return {str(k.value) for k in node.value.keys if isinstance(k, ast.Constant)}
    return set()


def _decorated(node: ast.AST) -> set[str]:
    if not isinstance(node, ast.ClassDef):
        return set()
    found: set[str] = set()
    for call in node.decorator_list:
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("register_module"):
            given = [*call.args, *(k.value for k in call.keywords if k.arg == "name")]
            for word in given:
                found |= {str(n.value) for n in ast.walk(word) if isinstance(n, ast.Constant)}
    return found
