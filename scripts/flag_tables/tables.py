"""Makes the table of one vLLM version, and what all tables together say of a flag's history."""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import re
from pathlib import Path

from . import batch, environment, records, registered
from .generations import engines, meanings
from .parsers import CLI_MODULES, serve_parser, server_parser, sources
from .records import Record
from .slices import Sources


def build(root: Path, version: str) -> Record:
    """The table of the version unpacked at `root`: the CUDA build's flags, and where the CPU build's differ."""
    cuda, cpu = (sources(root, version, build) for build in ("cuda", "cpu"))
    flags, cpu_flags = _flags(cuda, root), _flags(cpu, root)
    generations = engines(root, batch.v1_is_default(cuda))
    for name, told in meanings(root, generations, flags | cpu_flags).items():
        for found in (flags, cpu_flags):
            if name in found:
                found[name] |= told
    changed = [r for name, r in cpu_flags.items() if r != flags.get(name)]
    parser = server_parser(cuda)
    return {
        "version": version,
        "minor": ".".join(version.split(".")[:2]),
        "engines": " ".join(generations),
        "accepts": _accepts(parser),
        "absent_on_cpu": " ".join(name for name in flags if name not in cpu_flags),
        "flags": list(flags.values()),
        "cpu": changed,
        "batch": batch.rows(cuda, "cuda"),
        "cpu_batch": batch.rows(cpu, "cpu"),
        "environment": environment.variables(cuda),
    }


def _flags(made: Sources, root: Path) -> dict[str, Record]:
    """Records by name, those of `vllm serve` alone marked."""
    server = server_parser(made)
    found = _records(server)
    serve = serve_parser(made)
    for name, entry in (_records(serve) if serve else {}).items():
        if name not in found:
            found[name] = entry | {"entry": "serve"}
    for flag, names in (*registered.parsers(root), *registered.lists(made)):
        if flag in found and names:
            found[flag] |= {"choices": names, "open": True}
    _add_speculation(found, made)
    warned = _warnings(made)
    for name, entry in found.items():
        entry |= warned.get(name, {})
    return dict(sorted(found.items()))


def _add_speculation(found: dict[str, Record], made: Sources) -> None:
    """`--speculative-config` is parsed as bare JSON; its keys are checked afterwards, by a class of its own."""
    module = made.module("vllm.config")
    flag = found.get("--speculative-config")
    if flag is None or module is None or "keys" in flag:
        return
    keys = records.keys_of(module.SpeculativeConfig)
    if keys:
        flag |= {"config": "SpeculativeConfig", "keys": keys}


def _records(parser: argparse.ArgumentParser) -> dict[str, Record]:
    spellings: dict[int, list[str]] = {}
    for text, action in parser._option_string_actions.items():
        spellings.setdefault(id(action), []).append(text)
    found = {}
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        made = records.record(action, spellings.get(id(action), []))
        found[made["name"]] = made | records.status(action.help or "")
    return found


WARNED = re.compile(r"--([a-z][a-z0-9-]+)")


def _warnings(made: Sources) -> dict[str, Record]:
    """What string constants of the argument modules say of a flag that they begin with ("--x is deprecated ...")."""
    found: dict[str, Record] = {}
    for name in ("vllm.engine.arg_utils", *CLI_MODULES):
        module = made.module(name)
        for node in ast.walk(module.tree) if module else ():
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and node.value.lstrip("`").startswith("--")
            ):
                match, status = WARNED.search(node.value), records.status(node.value)
                if match and status:
                    found[f"--{match.group(1)}"] = status
    return found


def _accepts(parser: argparse.ArgumentParser) -> Record:
    """What the parser does with other spellings, by trying them."""
    return {
        "underscores": _parses(parser, ["--max_num_seqs", "5"]),
        "dotted": _parses(parser, ["--hf-overrides.a", "1"]),
    }


def _parses(parser: argparse.ArgumentParser, argv: list[str]) -> bool:
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            parser.parse_args(argv)
        except SystemExit:
            return False
    return True
