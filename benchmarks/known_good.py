"""Launch commands that vLLM's own people published: how `data/known_good.jsonl` is made, and its reader.

Usage: python benchmarks/known_good.py --extract CHECKOUT [--extract CHECKOUT] [--unread]
A checkout is a clone of vllm-project/recipes, or the unpacked sources of a vLLM release (its docs/ and examples/).
Read are Markdown (blocks and inline code), shell, YAML, notebooks, docstrings and comments of Python, and the
structured part of a recipe, of which one command a variant is put together. --unread prints every line that starts
a server and is in no record. Left out: fragments ("vllm serve ..."), which are no commands.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from known_good_text import Piece, pieces

from trimtab.engine.command import Form, LaunchCommand, Reading, read_commands
from trimtab.engine.flags import arity, minors
from trimtab.engine.reading import markdown
from trimtab.engine.source import Layer, Span
from trimtab.errors import UsageError
from trimtab.facts.gpu import parse_gpus

DATA = Path(__file__).parent / "data" / "known_good.jsonl"
WHOLE = (Form.COMPOSE, Form.KUBERNETES, Form.DOCKERFILE, Form.SYSTEMD, Form.CONFIG)
GPU = re.compile(r"\b(\d+)\s*[x×]\s*(?:NVIDIA |AMD )?((?:GB?|H|A|B|L|MI|RTX |DGX )\d{2,4}[A-Z]*)\b")
ELLIPSIS = re.compile(r"(?:^|\s)(?:\.\.\.|…|\[[A-Z_ ]+\]|<args>|\[.*?\.\.\.\])(?:\s|$)|\.\.\.$")
MINIMUM = re.compile(r"vllm\s*(?:version\s*)?(?:>=|≥|==)\s*v?(\d+\.\d+(?:\.\d+)?)", re.IGNORECASE)


@dataclass(frozen=True)
class Known:
    """One command: where it stands, the vLLM it is for and how that is known, and its text."""

    id: str
    repository: str
    commit: str
    path: str
    line: int
    vllm: str
    vllm_from: str
    model: str | None
    gpu: str | None
    text: str


@dataclass(frozen=True)
class Checkout:
    """A tree to read, its origin, and what its recipes say of versions."""

    root: Path
    repository: str
    commit: str
    release: str
    minimums: dict[str, str]


def known_good(file: Path = DATA) -> list[Known]:
    """The stored corpus."""
    return [Known(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]


def checkout(root: Path) -> Checkout:
    """What `root` is: a release's sources (PKG-INFO) or a clone of the recipes."""
    info = root / "PKG-INFO"
    if info.is_file():
        version = re.search(r"^Version: (\S+)", info.read_text(encoding="utf-8"), re.MULTILINE)
        assert version, f"{info} names no version"
        return Checkout(root, "vllm-project/vllm", f"v{version[1]}", version[1], {})
    asked = ["git", "-C", str(root), "rev-parse", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    minimums = {r["model"]["model_id"].lower(): r["model"]["min_vllm_version"] for _, r in recipes(root)}
    return Checkout(root, "vllm-project/recipes", commit, f"{minors()[-1]}", minimums)


def recipes(root: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Each structured recipe with its file."""
    from ruamel.yaml import YAML

    for file in sorted((root / "models").rglob("*.yaml")):
        yield file, YAML(typ="safe").load(file.read_text(encoding="utf-8"))


def extract(tree: Checkout) -> tuple[list[Known], list[str]]:
    """Every command of a checkout, and the lines that seem to start a server and are in none of them."""
    found: list[Known] = []
    unread: list[str] = []
    folders = ("docs", "examples") if tree.repository == "vllm-project/vllm" else (".",)
    files = sorted(f for folder in folders for f in (tree.root / folder).rglob("*") if f.is_file())
    for file in files:
        path = file.relative_to(tree.root).as_posix()
        if path.startswith((".git/", "src/", "scripts/", ".claude/", "node_modules/")):
            continue
        readings = [(p, read_commands(p.text, p.filename, arity)) for p in pieces(file, path)]
        found += [known for piece, reading in readings for known in _commands(tree, path, piece, reading)]
        read = {line for piece, reading in readings for line in _lines_read(piece, reading)}
        starts = {line: text for piece, _ in readings for line, text in piece.launches()}
        unread += [f"{path}:{line}: {text}" for line, text in sorted(starts.items()) if line not in read]
    if folders == (".",):
        found += [k for file, recipe in recipes(tree.root) for k in _variants(tree, file, recipe)]
    return found, unread


def _lines_read(piece: Piece, reading: Reading) -> Iterator[int]:
    at = reading.source.line_column
    for command in reading.commands:
        first, last = at(command.span.start)[0], at(command.span.end)[0]
        yield from range(piece.line + first - 1, piece.line + last)


def _commands(tree: Checkout, path: str, piece: Piece, reading: Reading) -> Iterator[Known]:
    seen: set[str] = set()
    for command in reading.commands:
        text, offset = _text(command, piece)
        if (command.form in WHOLE and text in seen) or ELLIPSIS.search(text) or not (command.model or command.flags):
            continue
        seen.add(text)
        line = command.source.line_column(offset)[0]
        version, origin = _version(tree, piece, command)
        yield Known(
            id=f"{tree.repository.rpartition('/')[2]}:{path}:{piece.line + line - 1}",
            repository=tree.repository,
            commit=tree.commit,
            path=path,
            line=piece.line + line - 1,
            vllm=version,
            vllm_from=origin,
            model=command.get("model") or (command.model.text if command.model else None),
            gpu=_gpu(piece, line),
            text=text,
        )


def _text(command: LaunchCommand, piece: Piece) -> tuple[str, int]:
    """The command alone and where it begins: of a manifest the whole block without comments."""
    if command.form in WHOLE:
        return _block(command, piece)
    data = command.source.data[command.span.start : command.span.end].decode("utf-8")
    inside = set(re.findall(r"(?:^|\s)([A-Z_a-z]\w*)=", data))
    outside = [f"{n}={u.value}" for n, u in command.env.items() if u.value is not None and n not in inside]
    text = " ".join(
        [*(w for w in outside if re.fullmatch(r"[\w=./,:-]+", w)), re.sub(r"[ \t]*\\\r?\n[ \t]*", " \\\n  ", data)]
    )
    again = read_commands(text, None, arity).commands
    same = len(again) == 1 and again[0].argv() == command.argv()
    return (text if same else command.command_line()), command.span.start


def _block(command: LaunchCommand, piece: Piece) -> tuple[str, int]:
    data, start = command.source.data, 0
    if piece.filename.endswith(".md"):
        for _, block in markdown.blocks(Layer.root(data)):
            span = block.root_span(Span(0, len(block.data)))
            if span.start <= command.span.start <= span.end:
                data, start = block.data, span.start
    text = data.decode("utf-8")
    if command.form in (Form.COMPOSE, Form.KUBERNETES):
        before = text[: command.span.start - start].rfind("\n---") + 1 if start == 0 else 0
        after = text.find("\n---", before + 4)
        text = text[before : after if after > 0 and start == 0 else len(text)]
        start += before
    kept = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return "\n".join(kept) + "\n", start


def _version(tree: Checkout, piece: Piece, command: LaunchCommand) -> tuple[str, str]:
    tag = command.container.version if command.container else None
    if tag:
        return tag, "image tag"
    if tree.repository == "vllm-project/vllm":
        return tree.release, "release"
    model = (command.get("model") or (command.model.text if command.model else "")).lower()
    said = MINIMUM.search(piece.page)
    for version, origin in (
        (piece.version, "recipe's minimum"),
        (said[1] if said else None, "page's minimum"),
        (tree.minimums.get(model), "recipe's minimum"),
    ):
        if version and version != "nightly":
            return version, origin
    return tree.release, "newest"


def _gpu(piece: Piece, line: int) -> str | None:
    """The cards that the nearest heading above, or the line just above the block, names; None of none or several."""
    lines = piece.text.splitlines()[: line - 1]
    near = [text for text in lines if re.match(r"\s*(?:#{1,6} |\*\*)", text)][-1:]
    for text in near:
        named = {f"{count}x{name.replace(' ', '')}" for count, name in GPU.findall(text)}
        if len(named) == 1:
            spec = named.pop()
            if spec.endswith("xH20") and re.search(r"H20\s*\(141 ?GB", piece.text):
                spec += "-141"  # the name stands for two cards, of 96 and of 141 GB
            try:
                parse_gpus(spec)
            except UsageError:
                return None
            return spec
    return None


def _variants(tree: Checkout, file: Path, recipe: dict[str, Any]) -> Iterator[Known]:
    """One command a variant, as the site puts it together: model, base arguments, the variant's, default features'."""
    import shlex

    model, path = recipe["model"], file.relative_to(tree.root).as_posix()
    if recipe.get("omni"):
        return
    opt_in = set(recipe.get("opt_in_features") or [])
    features = [f for name, f in (recipe.get("features") or {}).items() if name not in opt_in]
    for name, variant in recipe["variants"].items():
        env = {**(model.get("base_env") or {}), **(variant.get("extra_env") or {})}
        words = [*(model.get("base_args") or []), *(variant.get("extra_args") or [])]
        words += [w for f in features for w in (f.get("args") or [])]
        ref = variant.get("model_id") or model["model_id"]
        prefix = "".join(f"{k}={shlex.quote(str(v))} " for k, v in env.items())
        minimum = variant.get("min_vllm_version") or model["min_vllm_version"]
        yield Known(
            id=f"recipes:{path}#{name}",
            repository=tree.repository,
            commit=tree.commit,
            path=path,
            line=_line_of(file, f"  {name}:"),
            vllm=tree.release if minimum == "nightly" else minimum,
            vllm_from="newest" if minimum == "nightly" else "recipe's minimum",
            model=ref,
            gpu=None,
            text=prefix + shlex.join(["vllm", "serve", ref, *map(str, words)]),
        )


def _line_of(file: Path, start: str) -> int:
    lines = file.read_text(encoding="utf-8").splitlines()
    return next((n for n, text in enumerate(lines, 1) if text == start), 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extract", type=Path, action="append", required=True)
    parser.add_argument("--unread", action="store_true")
    options = parser.parse_args()
    found: list[Known] = []
    for root in options.extract:
        commands, unread = extract(checkout(root.resolve()))
        found += commands
        print(f"{root}: {len(commands)} commands, {len(unread)} lines in none", file=sys.stderr)
        if options.unread:
            print("\n".join(unread))
    lines = [json.dumps(asdict(k), ensure_ascii=False) for k in found]
    DATA.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
