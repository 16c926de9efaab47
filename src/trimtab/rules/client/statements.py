"""Read what a client (or a server's access log) says of failed requests: one statement a line, with status and path."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from trimtab.engine.logs import EntryKind, Log

MOST_LINE = 1000
FIRST_TEXT, LAST_TEXT = 40_000, 20_000
"""Characters of the first and of the last statements that are judged: rules look through all of it often."""
WHOLE_LINES, WRAPPED_LINES = 200, 60
"""Of a text that are read whatever they say, and that are also read in pairs: a client's error is short."""
_DIGITS = re.compile(r"\d+")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_NOTE = re.compile(r"\b(?:DEBUG|INFO|WARNING) \d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \[")
"""vLLM's own notes and warnings are no failed requests; uvicorn's lines ("INFO:     ...") are in another form."""
_ACCESS = re.compile(
    r"[\"'](?P<method>GET|POST|PUT|HEAD|OPTIONS|DELETE) (?P<path>\S+) HTTP/[\d.]+[\"'] (?P<status>\d{3})"
)
_URL = re.compile(r"https?://[^\s\"'<>()\[\]{},|]+")
_NAMED = {
    "AuthenticationError": 401, "PermissionDeniedError": 403, "NotFoundError": 404, "UnprocessableEntityError": 422,
    "RateLimitError": 429, "InternalServerError": 500, "BadRequestError": 400, "ServiceUnavailableError": 503,
}  # fmt: skip
"""Exceptions of openai-python, anthropic-sdk-python and LiteLLM that mean one status."""
_ERROR_NAME = re.compile(r"\b(?:openai|litellm|anthropic|exceptions)\.(\w+)|\b(\w+Error): (?:\w+Exception|Error code)")
_STATUS = re.compile(
    r"Error code: (\d{3})\b"
    r"|\bstatus[ _-]?(?:code)?[\"']?\s*(?:is|of|[=:])?\s*(?:code\s)?(\d{3})\b"
    r"|\bHTTP(?:/[\d.]+)?[ :]+(?:error |status )?(\d{3})\b"
    r"|\b(\d{3}) (?:Client|Server) Error\b"
    r"|\bAPI Error:? \(?(\d{3})\b"
    r"|\b([45]\d\d),? (?:message=|Unauthorized|Forbidden|Not Found|Method Not Allowed|Bad Request|Unprocessable"
    r"|Request Entity Too|Payload Too|Content Too|Too Many|Internal Server|Bad Gateway|Service|Gateway)"
    r"|[\"']code[\"']: ?[\"']?([45]\d\d)\b"
    r"|^\s*\[?([45]\d\d)\b(?=[\]: ])"
    r"|\bError:? ([45]\d\d)\b",
    re.IGNORECASE,
)
_TELLING = re.compile(
    r"error|exception|fail|refus|timed?[ -]?out|deadline|unauthori|forbid|denied|not found|no such|cannot|can't"
    r"|unable|invalid|unexpected|expecting|expected|missing|unknown|not supported|unsupported|must |require|exceed"
    r"|too (?:long|large|many|old)|longer than|greater than|only |at most|no longer|closed|reset|aborted|terminated"
    r"|unreachable|resolve|certificate|ssl|tls|proxy|login|sign in|oauth|choices|<html|<!doctype|<head|<title"
    r"|HTTP/[\d.]+[\"'] [345]\d\d|ECONN|ENOTFOUND|EAI_|ETIMEDOUT|EPROTO|CERT_|\b[45]\d\d\b|roles|template"
    r"|api-key|authorization:|blocked|\bcors\b|no healthy|overload|\bdead\b|rejected|at the beginning|does not|"
    r"could not|Ollama|curl: \(",
    re.IGNORECASE,
)


_PARSER = re.compile(r"vllm/.*(?:tool_parsers?|reasoning)/\w+\.py")
_UNAUTHORISED = re.compile(r"\{[\"']error[\"']: ?[\"']Unauthorized[\"']\}")
"""vLLM's whole body of a 401."""


class Statement(msgspec.Struct, frozen=True):
    """One line that tells of a failure, or one answer of a probe; `line` from 1, None of an answer."""

    text: str
    line: int | None = None
    status: int | None = None
    method: str = ""
    path: str = ""  # of the request, with its query cut off
    url: str = ""

    @property
    def quoted(self) -> str:
        """As evidence."""
        text = self.text if len(self.text) <= 300 else f"{self.text[:297]}..."
        return text if self.line is None else f"line {self.line}: {text}"


def read_statements(lines: Iterable[str]) -> tuple[Statement, ...]:
    """The lines in order, each once whatever its numbers; from WHOLE_LINES on only those that may tell something, with
    the one after each (a message is often wrapped), and the first and last of them where there are very many."""
    found: dict[str, Statement] = {}
    told = False
    for number, line in enumerate(lines, 1):
        if _NOTE.search(line[:200]):
            told = False
            continue
        before, told = told, bool(_TELLING.search(line[:MOST_LINE]))
        if not told and not before and number > WHOLE_LINES:
            continue
        statement = _statement(line[:MOST_LINE], number)
        found.setdefault(_shape(statement), statement)
    return _bounded(found.values())


def _shape(statement: Statement) -> str:
    """Status and text without its numbers: what is told again differs by time, port and request alone."""
    return f"{statement.status} {_DIGITS.sub('0', statement.text)}"


def _bounded(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """The first and the last of them, by their length."""
    first: list[Statement] = []
    last: deque[Statement] = deque()
    size = kept = 0
    for statement in statements:
        size += len(statement.text)
        if size <= FIRST_TEXT:
            first.append(statement)
            continue
        last.append(statement)
        kept += len(statement.text)
        while kept > LAST_TEXT:
            kept -= len(last.popleft().text)
    return (*first, *last)


def statements_of_log(log: Log) -> tuple[Statement, ...]:
    """What a log that was read already says of failed requests: its errors, plain lines and refused accesses.

    Of a short text that tells of no start (a client's) each line is read as it stands.
    """
    if not log.facts.starts and log.lines == len(log.tail):
        return read_statements(log.tail)
    found: dict[str, Statement] = {}
    for entry in log.of(EntryKind.EXCEPTION, EntryKind.ERROR, EntryKind.PLAIN):
        if any(_PARSER.search(frame) for frame in entry.frames):
            continue  # the model's text, which the server's own parser could not read
        for text in (*entry.frames, entry.text):
            if text and _TELLING.search(text[:MOST_LINE]):
                statement = _statement(text[:MOST_LINE], entry.line)
                found.setdefault(_shape(statement), statement)
    for access in log.accesses:
        text = f"{access.count} x {access.path} -> {access.status}"
        found.setdefault(text, Statement(text, access.line, access.status, "", access.path))
    return _bounded(sorted(found.values(), key=lambda s: s.line or 0))


def joined(statements: Iterable[Statement]) -> Iterator[Statement]:
    """Pairs of neighbouring lines as one, in a short text: a message is often wrapped, and its two halves quoted."""
    before: Statement | None = None
    for statement in islice(statements, WRAPPED_LINES):
        if before is not None and before.line is not None and statement.line == before.line + 1:
            text = f"{before.text.rstrip().rstrip(_ENDS)} {statement.text.lstrip().lstrip(_ENDS)}"
            yield msgspec.structs.replace(before, text=text)
        before = statement


_ENDS = "\"'\\"


def path_of(url: str) -> str:
    """ "/v1/models" of "http://host:8000/v1/models?x=1"; "" of a URL without a path."""
    rest = url.partition("://")[2] or url
    at = rest.find("/")
    return re.split(r"[?#]", rest[at:])[0].rstrip(".:;'") if at >= 0 else ""


def _statement(line: str, number: int) -> Statement:
    text = _ANSI.sub("", line).replace('\\"', '"').replace("\\n", " ").strip()
    access = _ACCESS.search(text)
    if access is not None:
        path = path_of(access["path"]) if "://" in access["path"] else re.split(r"[?#]", access["path"])[0]
        return Statement(text, number, int(access["status"]), access["method"], path)
    url = _URL.search(text)
    address = url.group(0).rstrip(".,;:'") if url else ""
    return Statement(text, number, _status(text), "", path_of(address), address)


def _status(text: str) -> int | None:
    found = _STATUS.search(text)
    if found is not None:
        status = int(next(group for group in found.groups() if group))
        if 300 <= status < 600:
            return status
    if _UNAUTHORISED.match(text):
        return 401
    return next((_NAMED[name] for pair in _ERROR_NAME.findall(text) for name in pair if name in _NAMED), None)
