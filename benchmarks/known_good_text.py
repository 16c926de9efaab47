"""The pieces of a file that may hold launch commands, each as a text that the command reader takes, with its line."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

LAUNCH = re.compile(r"vllm[\"', \t]+serve\b|vllm\.entrypoints\.(?:openai\.)?api_server|vllm/vllm-openai")
INLINE = re.compile(r"(?<!`)`((?:[A-Z_]+=\S+ )*(?:vllm serve|python3? -m vllm\.)[^`\n]*)`(?!`)")
FIRST = re.compile(
    r"\s*(?:[-*] |run: |# |\$ |> )?"
    r"((?:[A-Z_]+=\S+ +)*(?:vllm serve \S|python3? -m vllm\.entrypoints\.\S*api_server ).*)"
)


@dataclass(frozen=True)
class Piece:
    """A text, the line of its file at which it begins, the name to read it under, and its page, and its vLLM."""

    text: str
    line: int
    filename: str
    page: str = ""
    version: str | None = None

    def launches(self) -> Iterator[tuple[int, str]]:
        """Lines of the file that seem to start a server."""
        for number, line in enumerate(self.text.splitlines(), self.line):
            if LAUNCH.search(line):
                yield number, line.strip()


def pieces(file: Path, path: str) -> Iterator[Piece]:
    """All pieces of one file; none of a file that holds no launch."""
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    if not LAUNCH.search(text):
        return
    match file.suffix:
        case ".md":
            yield from _markdown(text, 1, None)
        case ".sh" | ".txt" | "":
            yield Piece(text, 1, file.name, text)
        case ".yaml" | ".yml":
            yield from _recipe(text) if path.startswith("models/") else [Piece(text, 1, file.name, text)]
        case ".py":
            yield from _python(text)
        case ".ipynb":
            yield from _notebook(text)


def _markdown(text: str, line: int, version: str | None) -> Iterator[Piece]:
    yield Piece(text, line, "page.md", text, version)
    fenced = ""
    code: list[str] = []
    for number, words in enumerate(text.splitlines(), line):
        fence = re.match(r"[ >]*(?:```|~~~)\s*(\w*)", words)
        if fence:
            if fenced == "python":
                yield from _prose("\n".join(code), number - len(code), text, version)
            fenced, code = ("" if fenced else fence[1] or "plain"), []
        elif fenced:
            code.append(words.strip())
        else:
            yield from (Piece(match[1], number, "inline.sh", text, version) for match in INLINE.finditer(words))


def _recipe(text: str) -> Iterator[Piece]:
    """The guide of a structured recipe, which is Markdown."""
    version = re.search(r'^  min_vllm_version: "?([\w.]+)', text, re.MULTILINE)
    lines = text.splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith("guide: |")), len(lines))
    guide = "\n".join(lines[start + 1 :])
    yield from _markdown(dedent(guide), start + 2, version[1] if version else None)


def _python(text: str) -> Iterator[Piece]:
    """Docstrings, other long strings, runs of comments, and lists of words."""
    tree = ast.parse(text)
    names = {
        t.id: n.value.value
        for n in ast.walk(tree)
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant) and isinstance(n.value.value, (str, int))
        for t in n.targets
        if isinstance(t, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and LAUNCH.search(node.value):
            if "```" in node.value:
                yield Piece(dedent(node.value), node.lineno, "string.md", text)
            else:
                yield from _prose(node.value, node.lineno, text)
        elif isinstance(node, ast.List) and [_word(e, names) for e in node.elts[:2]] == ["vllm", "serve"]:
            words = [_word(e, names) for e in node.elts]
            yield Piece(" ".join(json.dumps(w) if " " in w else w for w in words), node.lineno, "words.sh", text)
    yield from _comments(text)


def _word(node: ast.expr, names: dict[str, str | int]) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Name) and node.id in names:
        return str(names[node.id])
    if isinstance(node, ast.Call) and len(node.args) == 1:
        return _word(node.args[0], names)
    return f"${ast.unparse(node)}" if isinstance(node, ast.Name) else "$value"


def _comments(text: str) -> Iterator[Piece]:
    run: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if run and token.start[0] != run[-1][0] + 1:
                yield from _joined(run, text)
                run = []
            run.append((token.start[0], re.sub(r"^# ?", "", token.string)))
    yield from _joined(run, text)


def _joined(run: list[tuple[int, str]], page: str) -> Iterator[Piece]:
    if run:
        yield from _prose("\n".join(line for _, line in run), run[0][0], page)


def _prose(words: str, line: int, page: str, version: str | None = None) -> Iterator[Piece]:
    """Commands among sentences: each from its first word to the line that does not go on."""
    lines = words.splitlines()
    for at, first in enumerate(lines):
        begin = FIRST.match(first)
        for match in INLINE.finditer(first):
            yield Piece(match[1], line + at, "inline.sh", page, version)
        if begin is None:
            continue
        end = at
        while end + 1 < len(lines) and (lines[end].endswith("\\") or "\n".join(lines[at : end + 1]).count("'") % 2):
            end += 1
        yield Piece("\n".join([begin[1], *lines[at + 1 : end + 1]]), line + at, "prose.sh", page, version)


def _notebook(text: str) -> Iterator[Piece]:
    for cell in json.loads(text)["cells"]:
        words = "".join(cell["source"])
        first = words.splitlines()[0] if words else ""
        at = text.find(json.dumps(first)[1:-1]) if first else 0
        line = text.count("\n", 0, max(at, 0)) + 1
        if cell["cell_type"] == "markdown":
            yield Piece(words, line, "cell.md", words)
        else:
            yield Piece(re.sub(r"^[!%]+(?:bash|sh)?", "", words, flags=re.MULTILINE), line, "cell.sh", words)
