"""What other programs write before a line of the engine's: compose, kubectl, journald, syslog, JSON lines and more."""

from __future__ import annotations

import re

import msgspec

_OUTER = re.compile(
    r"(?:\[pod/[^\]]+\] )?"  # kubectl logs --prefix
    r"(?:[\w.-]+ +\| )?"  # docker compose
    r"(?:\d{4}-\d\d-\d\dT[\d:.,]+(?:Z|[+-]\d\d:?\d\d) (?:std(?:out|err) [FP] )?)?"  # kubectl, docker --timestamps, CRI
    r"(?:(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d )?[\w.-]+ [\w@.()-]+\[\d+\]: )?"  # journald
)
_ENGINE = r"(?=\(\w+(?: \w+)* pid=\d|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)(?: \d\d-\d\d |: {4}))"
_SELDOM = re.compile(
    r"\d+\|[\w.-]+ +\| (?:\d{4}-\d\d-\d\dT[\d:.]+: )?"  # pm2
    r"|\[\d{4}-\d\d-\d\d[ T][\d:.,]+Z?\] "
    r"|<\d+>1 \S+ \S+ \S+ \S+ \S+ (?:-|\[[^\]]*\]) "  # RFC 5424
    rf"|(?:[\w.-]+ ){{2}}{_ENGINE}"  # stern: pod and container
    rf"|\d{{4}}-\d\d-\d\d[ T][\d:.,]+Z? (?:\[\w+\] (?:\(\w+\) )?)?{_ENGINE}"
)
_PLAIN = ("(", "I", "W", "E", "D", " ")
"""How nearly all lines of an engine begin."""
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
    if text.startswith('{"'):
        text = _of_json(text)
    if len(text) > LONGEST_WORD:
        text = _LONG_WORD.sub(lambda word: f"{word[0][:KEPT]}...{word[0][-KEPT:]}", text)
    if "\x00" in text:
        text = text.replace("\x00", "")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "\r" in text:
        text = text.rsplit("\r", 1)[-1]
    if found := _OUTER.match(text):
        text = text[found.end() :]
    if not text.startswith(_PLAIN) and (found := _SELDOM.match(text)):
        text = text[found.end() :]
    if text.startswith("["):
        if rank := _RANK.match(text):
            return text[rank.end() :], f"rank{rank[1]}"
    elif text[:2] == "20" and (dated := _DATED.match(text)):
        return f"{dated['level']}: {text[dated.end() :]}", ""
    return text, ""


def _of_json(text: str) -> str:
    """The line that a JSON object of docker or a log collector holds; an API's own error body stays as it is."""
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    if not isinstance(found, dict) or not ("log" in found or found.keys() & _COLLECTED):
        return text
    inner = next((found[key] for key in ("log", "message", "msg", "MESSAGE", "line") if key in found), None)
    return inner.rstrip("\r\n") if isinstance(inner, str) else text


_COLLECTED = frozenset(
    {"level", "severity", "time", "timestamp", "ts", "@timestamp", "levelname", "__REALTIME_TIMESTAMP"}
)
