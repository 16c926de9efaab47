"""A server on a real socket that speaks the part of the model hub's API that a download uses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from tests.fakes.listening import listening

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE = 4096  # from this size on a file is kept as LFS: served by redirect, named by its SHA-256


@dataclass
class Repo:
    """One repository: its files, who may read it, and how it misbehaves."""

    files: dict[str, bytes]
    gated: bool = False
    private: bool = False
    granted: set[str] = field(default_factory=set)
    commit: str = COMMIT

    def etag(self, name: str) -> str:
        data = self.files[name]
        return hashlib.sha256(data).hexdigest() if self.large(name) else hashlib.sha1(data).hexdigest()

    def large(self, name: str) -> bool:
        return len(self.files[name]) >= LARGE


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    range: str | None
    token: str | None


class FakeHub:
    """The hub's state, and what tests ask of it afterwards."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.valid_tokens: set[str] = set()
        self.requests: list[Request] = []
        self.fail_all: int | None = None  # every answer is this status
        self.cuts: list[int] = []  # the next answers of large files end after so many bytes
        self.after_bytes: Callable[[str, int], None] | None = None  # called as a large file is served
        self.ignore_ranges = False
        self.endpoint = ""

    def gets(self, word: str) -> list[Request]:
        return [r for r in self.requests if r.method == "GET" and word in r.path]


@contextmanager
def serve_hub() -> Iterator[FakeHub]:
    """Run a `FakeHub` on a free port of this host."""
    hub = FakeHub()

    class Handler(_Handler):
        state = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    with listening(server):
        yield hub


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: FakeHub

    def log_message(self, *_: object) -> None:
        """Tests read `FakeHub.requests`."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
        self.state.requests.append(Request(self.command, self.path, self.headers.get("Range"), token))
        parts = urlsplit(self.path)
        words = [unquote(w) for w in parts.path.strip("/").split("/")]
        if self.state.fail_all is not None:
            return self._send(self.state.fail_all, b"no", {"Retry-After": "0"})
        if token is not None and token not in self.state.valid_tokens:
            return self._error(401, None, "Invalid credentials in Authorization header")
        if words[:2] == ["api", "models"] and len(words) == 2:
            return self._list(parse_qs(parts.query).get("author", [""])[0])
        if words[:2] == ["api", "models"]:
            return self._info("/".join(words[2:4]), words[5] if len(words) > 5 else "main", token)
        if words[0] == "cdn":
            return self._body(self.state.repos["/".join(words[1:3])], "/".join(words[3:]))
        return self._resolve("/".join(words[:2]), words[3], "/".join(words[4:]), token)

    def _list(self, author: str) -> None:
        found = [{"id": name, "modelId": name} for name in self.state.repos if name.startswith(author + "/")]
        self._send(200, json.dumps(found).encode())

    def _known(self, name: str, revision: str, token: str | None) -> Repo | None:
        repo = self.state.repos.get(name)
        if repo is None or (repo.private and token not in repo.granted):
            # As the hub does: without a token it does not tell a missing repository from a private one.
            message = "Repository not found" if token else "Invalid username or password."
            self._error(404 if token else 401, "RepoNotFound", message)
            return None
        if revision not in ("main", repo.commit):
            self._error(404, "RevisionNotFound", "Invalid rev id")
            return None
        return repo

    def _info(self, name: str, revision: str, token: str | None) -> None:
        repo = self._known(name, revision, token)
        if repo is None:
            return
        siblings = []
        for file, data in repo.files.items():
            entry: dict[str, object] = {"rfilename": file, "size": len(data), "blobId": hashlib.sha1(data).hexdigest()}
            if repo.large(file):
                entry["lfs"] = {"sha256": repo.etag(file), "size": len(data), "pointerSize": 130}
            siblings.append(entry)
        body = {"id": name, "modelId": name, "sha": repo.commit, "siblings": siblings, "private": repo.private,
                "gated": "manual" if repo.gated else False, "tags": [], "downloads": 0, "likes": 0}  # fmt: skip
        self._send(200, json.dumps(body).encode())

    def _resolve(self, name: str, revision: str, file: str, token: str | None) -> None:
        repo = self._known(name, revision, token)
        if repo is None:
            return None
        if repo.gated and token not in repo.granted:
            message = f"Access to model {name} is restricted"
            return self._error(403 if token else 401, "GatedRepo", message)
        if file not in repo.files:
            return self._error(404, "EntryNotFound", "Entry not found")
        if repo.large(file):
            headers = {"X-Repo-Commit": repo.commit, "X-Linked-ETag": f'"{repo.etag(file)}"',
                       "X-Linked-Size": str(len(repo.files[file])), "Location": f"/cdn/{name}/{file}"}  # fmt: skip
            # An absolute address under another name: a different host, as the hub's CDN is.
            port = self.server.server_address[1]
            headers["Location"] = f"http://localhost:{port}/cdn/{name}/{file}"
            return self._send(302, b"", headers)
        headers = {"X-Repo-Commit": repo.commit, "ETag": f'"{repo.etag(file)}"'}
        return self._send(200, repo.files[file], headers)

    def _body(self, repo: Repo, file: str) -> None:
        data, start, status, headers = repo.files[file], 0, 200, {"Accept-Ranges": "bytes"}
        asked = self.headers.get("Range")
        if asked and not self.state.ignore_ranges:
            start = int(asked.removeprefix("bytes=").split("-")[0])
            if start >= len(data):
                return self._send(416, b"", {"Content-Range": f"bytes */{len(data)}"})
            status, headers["Content-Range"] = 206, f"bytes {start}-{len(data) - 1}/{len(data)}"
        body = data[start:]
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        end = self.state.cuts.pop(0) if self.state.cuts else len(body)
        for at in range(0, min(end, len(body)), 1 << 16):
            self.wfile.write(body[at : min(at + (1 << 16), end)])
            if self.state.after_bytes is not None:
                self.state.after_bytes(file, start + at)
        if end < len(body):
            self.close_connection = True
        return None

    def _error(self, status: int, code: str | None, message: str) -> None:
        headers = {"X-Error-Message": message} | ({"X-Error-Code": code} if code else {})
        self._send(status, json.dumps({"error": message}).encode(), headers)

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
