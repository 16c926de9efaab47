"""Builds the argument parser of one vLLM version from its sliced source and reads what it accepts."""

from __future__ import annotations

import argparse
import ast
import contextlib
import logging
import sys
import typing
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .slices import Sources, attribute_docs
from .standins import foreign


class Platform:
    """The device that the sliced code asks about; `build` is "cuda" or "cpu"."""

    def __init__(self, build: str, memory_gib: float = 0, card: str = "") -> None:
        self.device_type = build
        self.device_name = build
        self.memory_gib = memory_gib
        self.card = card

    def get_device_total_memory(self, device_id: int = 0) -> int:
        return int(self.memory_gib * 2**30)

    def get_device_name(self, device_id: int = 0) -> str:
        return self.card

    def is_device_capability(self, wanted: object) -> bool:
        return self.card == "gb10" and wanted == (12, 1)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("is_"):
            return lambda *a, **k: (
                name == f"is_{self.device_type}" or (name == "is_cuda_alike" and self.device_type == "cuda")
            )
        return lambda *a, **k: None


def sources(root: Path, version: str, build: str) -> Sources:
    """The sliced sources of the version unpacked at `root`."""
    logger = logging.getLogger("flag_tables")
    for level in ("debug", "info", "warning"):
        setattr(logger, f"{level}_once", lambda *a, **k: None)
    overrides: dict[str, Any] = {
        "vllm.platforms:current_platform": Platform(build),
        "vllm.logger:init_logger": lambda name: logger,
        "vllm.logger:suppress_logging": contextlib.nullcontext,
        "vllm.plugins:load_general_plugins": lambda: None,
        "vllm.engine.arg_utils:NEEDS_HELP": True,
        "vllm.engine.arg_utils:get_type": widest,
        "vllm:__version__": version,
        "vllm.version:__version__": version,
    }
    made = Sources(root, overrides)

    def lazy(local: str, space: dict[str, Any], name: str) -> Any:
        return made.module(name) or foreign(name)

    for module in ("vllm.utils", "vllm.utils.torch_utils"):
        overrides[f"{module}:is_torch_equal_or_newer"] = lambda target: True
    for module in ("vllm.utils", "vllm.utils.import_utils"):
        overrides[f"{module}:LazyLoader"] = lazy

    def docs(cls: type) -> dict[str, str]:
        def tree(name: str) -> Any:
            module = made.module(name) if name.startswith("vllm") else None
            return module.tree if module else None

        return attribute_docs(cls, tree)

    for module in ("vllm.config", "vllm.config.utils", "vllm.engine.arg_utils"):
        overrides[f"{module}:get_attr_docs"] = docs
    return made


def widest(hints: Iterable[Any], kind: Any) -> Any:
    """Stands for vLLM's `get_type`, which takes whichever Literal its set yields first (0.8): the longer one."""
    fitting = [h for h in hints if h is kind or typing.get_origin(h) is kind]
    return max(fitting, key=lambda h: (len(typing.get_args(h)), str(h)), default=None)


CLI_MODULES = tuple(f"vllm.entrypoints.{p}.cli_args" for p in ("common", "launchers", "openai"))
PARSER_MODULES = ("vllm.utils.argparse_utils", "vllm.utils")
SERVE_MODULES = ("vllm.entrypoints.cli.serve", "vllm.scripts")


def server_parser(made: Sources) -> argparse.ArgumentParser:
    """The parser of `python -m vllm.entrypoints.openai.api_server`."""
    cli = _first(made, CLI_MODULES)
    with _as_serve():
        if "parser" in [a.arg for a in cli.definitions["make_arg_parser"].args.args]:
            parser = cli.make_arg_parser(_flexible(made)())
        else:
            parser = cli.make_arg_parser()
    assert isinstance(parser, argparse.ArgumentParser)
    return parser


def serve_parser(made: Sources) -> argparse.ArgumentParser | None:
    """The parser of `vllm serve`, None before there was such a command."""
    module = next((m for m in map(made.module, SERVE_MODULES) if m is not None), None)
    if module is None:
        return None
    collected = _Subparsers(_flexible(made))
    with _as_serve():
        if "ServeSubcommand" in module.definitions:
            module.ServeSubcommand().subparser_init(collected)
        else:
            _run_serve_lines(module, collected)
    return collected.made["serve"]


class _Subparsers:
    """Stands for argparse's own: keeps each parser under its name."""

    def __init__(self, parser: Any) -> None:
        self.parser = parser
        self.made: dict[str, argparse.ArgumentParser] = {}

    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser:
        self.made[name] = self.parser()
        return self.made[name]


def _run_serve_lines(module: Any, collected: _Subparsers) -> None:
    """Before there were subcommand classes, `main` built the parser: run only those of its lines."""
    lines = [s for s in module.definitions["main"].body if _stored_or_called(s) == "serve_parser"]
    space = module.__dict__["space"] | {"subparsers": collected}
    exec(compile(ast.Module(lines, []), "scripts.py", "exec"), space)


def _stored_or_called(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.Assign):
        return ast.unparse(statement.targets[0])
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return ast.unparse(statement.value.func).split(".")[0]
    return None


def _flexible(made: Sources) -> Any:
    return next(
        m.FlexibleArgumentParser
        for m in map(made.module, PARSER_MODULES)
        if m is not None and "FlexibleArgumentParser" in m.definitions
    )


def _first(made: Sources, names: Iterable[str]) -> Any:
    return next(m for m in map(made.module, names) if m is not None)


@contextlib.contextmanager
def _as_serve() -> Iterator[None]:
    before = sys.argv
    sys.argv = ["vllm", "serve"]
    try:
        yield
    finally:
        sys.argv = before
