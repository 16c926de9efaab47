"""YAML that every reader takes alike: a string that YAML 1.1, YAML 1.2 or a person could misread is quoted."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
"""Strings that may stand unquoted, but for WORDS."""
WORDS = re.compile(r"y|n|yes|no|on|off|true|false|null|nan|inf", re.IGNORECASE)


def dump(documents: Sequence[Any], about: Sequence[str] = ()) -> str:
    """The documents as block YAML under comment lines."""
    from ruamel.yaml import YAML

    from trimtab.plan.render.shelltext import comment

    yaml = YAML()
    yaml.width = 1 << 30  # no line is folded
    yaml.indent(mapping=2, sequence=4, offset=2)
    stream = io.StringIO()
    yaml.dump_all([_quoted(document) for document in documents], stream)
    return "".join(f"{comment(line)}\n" for line in about) + stream.getvalue()


def _quoted(node: Any) -> Any:
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    if isinstance(node, dict):
        return {_quoted(key): _quoted(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_quoted(value) for value in node]
    if isinstance(node, str) and (not PLAIN.fullmatch(node) or WORDS.fullmatch(node)):
        return DoubleQuotedScalarString(node)
    return node
