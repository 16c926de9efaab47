"""What other programs write before a line of the engine's: compose, kubectl, CRI, journald, docker's JSON files."""

from __future__ import annotations

import re

import msgspec

_OUTER = re.compile(
    r"(?:\[pod/[^\]]+\] )?"  # kubectl logs --prefix
    r"(?:[\w.-]+ +\| )?"  # docker compose
    r"(?:\d{4}-\d\d-\d\dT[\d:.,]+(?:Z|[+-]\d\d:?\d\d) (?:std(?:out|err) [FP] )?)?"  # kubectl, docker --timestamps, CRI
    r"(?:(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d )?[\w.-]+ [\w@.()-]+\[\d+\]: )?"  # journald
)
_DATED = re.compile(
    r"\d{4}-\d\d-\d\d[ T][\d:.,]+Z?[\s-]+(?:[\w.]+ - )?(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL)[\s:-]+"
    r"(?:\[[^\]]*\] ?|[\w.]+(?::\d+)?: )?"
)  # a formatter of the user's own
_RANK = re.compile(r"\[rank(\d+)\]: ?")
LONGEST_WORD = 500
KEPT = 200  # characters at each end of a longer one
_LONG_WORD = re.compile(rf"[\w./:=+%@~,\\-]{{{LONGEST_WORD},}}")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def unwrap(line: str) -> tuple[str, str]:
    """The line as the engine wrote it, and `rank3` where torch's launcher names a rank; colours are taken out.

    A word longer than any path or flag (encoded bytes, prompts of one letter) is cut in its middle: patterns that look
    for a word's end take time with the square of its length.
    """
    text = line.rstrip("\r\n")
    if len(text) > LONGEST_WORD:
        text = _LONG_WORD.sub(lambda word: f"{word[0][:KEPT]}...{word[0][-KEPT:]}", text)
    if text.startswith('{"log":'):
        text = _docker_json(text)
    if "\x00" in text:
        text = text.replace("\x00", "")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "\r" in text:
        text = text.rsplit("\r", 1)[-1]
    if found := _OUTER.match(text):
        text = text[found.end() :]
    if text.startswith("["):
        if rank := _RANK.match(text):
            return text[rank.end() :], f"rank{rank[1]}"
    elif text[:2] == "20" and (dated := _DATED.match(text)):
        return f"{dated['level']}: {text[dated.end() :]}", ""
    return text, ""


def _docker_json(text: str) -> str:
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    inner = found.get("log") if isinstance(found, dict) else None
    return inner.rstrip("\r\n") if isinstance(inner, str) else text
