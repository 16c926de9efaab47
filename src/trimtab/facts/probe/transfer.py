"""Move the large files of a repository into the cache, several at once; a cut transfer goes on where it stopped.

The hub's client opens the connections, but it throws a partial file away when the program ends. Here the partial file
stays beside the finished ones (`NAME.trimtab.part`) and the next run asks only for the rest.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, Self

import msgspec

from trimtab.errors import HostError
from trimtab.messages import Message, msg

WORKERS = 4
TRIES = 5  # without a single new byte
RATE_WINDOW_S = 5.0


class Progress(msgspec.Struct, frozen=True):
    """How far a download is: bytes there (those of an earlier run too), bytes in all, rate of the last seconds."""

    done_bytes: int
    total_bytes: int
    bytes_per_s: float


class TransferObserver(Protocol):
    """Who watches a download. Called from the thread that asked for it, a few times a second."""

    def moved(self, progress: Progress) -> None: ...

    def noted(self, note: Message) -> None: ...


class Stopped(Exception):
    """Ends a worker's transfer because another failed or the user pressed Ctrl-C. Never leaves this package."""


class Meter:
    """Counts bytes from several threads and knows the rate of the last seconds."""

    def __init__(self, total_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._total, self._clock = total_bytes, clock
        self._files: dict[str, int] = {}
        self._moved: deque[tuple[float, int]] = deque([(clock(), 0)])
        self._received = 0
        self._lock = threading.Lock()

    def place(self, name: str, at_bytes: int) -> None:
        """The file `name` stands at `at_bytes`; these did not come over the wire now."""
        with self._lock:
            self._files[name] = at_bytes

    def add(self, name: str, n_bytes: int) -> None:
        with self._lock:
            self._files[name] = self._files.get(name, 0) + n_bytes
            self._received += max(n_bytes, 0)
            self._moved.append((self._clock(), self._received))

    def progress(self) -> Progress:
        with self._lock:
            now = self._clock()
            while len(self._moved) > 1 and now - self._moved[0][0] > RATE_WINDOW_S:
                self._moved.popleft()
            since, before = self._moved[0]
            rate = (self._received - before) / max(now - since, 0.05)
            return Progress(sum(self._files.values()), self._total, rate)


def bar_class(name: str, meter: Meter, stop: threading.Event) -> type[Any]:
    """What the hub's client takes for a progress bar (`tqdm_class`): draws nothing, counts, can end a transfer."""

    class Bar:
        def __init__(self, *_: object, initial: int = 0, **__: object) -> None:
            meter.place(name, initial)

        def update(self, n: float | None = 1) -> None:
            meter.add(name, int(n or 0))
            if stop.is_set():
                raise Stopped

        def set_postfix_str(self, *_: object, **__: object) -> None:
            """The client shows its own rate here."""

        def refresh(self) -> None:
            """The client redraws here."""

        def close(self) -> None:
            """The client ends its bar here."""

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            self.close()

    return Bar


class Source(msgspec.Struct, frozen=True):
    """A large file to be fetched: where from, and what it must be."""

    name: str
    url: str
    headers: Mapping[str, str]
    size: int
    sha256: str


def part_of(blob: Path) -> Path:
    """Where the part of `blob` that has already come lies."""
    return blob.with_name(blob.name + ".trimtab.part")


def fetch_blob(source: Source, blob: Path, meter: Meter, stop: threading.Event) -> None:
    """Bring `source` to `blob`, whole or not at all; what came before a failure stays in `part_of(blob)`."""
    part = part_of(blob)
    blob.parent.mkdir(parents=True, exist_ok=True)
    with _locked(part, stop):
        if blob.exists():
            meter.place(source.name, source.size)
            return
        resumed = part.stat().st_size > 0
        _fill(source, part, meter, stop)
        if resumed and _sha256(part) != source.sha256:
            part.write_bytes(b"")
            _fill(source, part, meter, stop)
        if resumed and _sha256(part) != source.sha256:
            part.unlink()
            raise HostError(
                msg("{file} arrived damaged: its SHA-256 is not the one the hub names", file=source.name),
                hint=msg(
                    "Run the command again; if it repeats, another mirror (HF_ENDPOINT) may serve the right file."
                ),
            )
        os.replace(part, blob)


def _fill(source: Source, part: Path, meter: Meter, stop: threading.Event) -> None:
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.file_download import http_get

    tries, bar = 0, bar_class(source.name, meter, stop)
    while True:
        have = part.stat().st_size
        if have > source.size:
            part.write_bytes(b"")
            have = 0
        meter.place(source.name, have)
        try:
            with part.open("ab") as stream:
                http_get(
                    source.url, stream, resume_size=have, headers=dict(source.headers), expected_size=source.size,
                    tqdm_class=bar,
                )  # fmt: skip
            return
        except HfHubHTTPError as error:
            status = error.response.status_code
            if status == 416:
                part.write_bytes(b"")
            elif status < 500:
                raise
            last: Exception = error
        except (httpx2.NetworkError, httpx2.TimeoutException, httpx2.RemoteProtocolError) as error:
            last = error
        except OSError as error:
            if error.errno is not None:
                raise
            last = error  # the client's check of the size: the server closed too early
        tries = 0 if part.stat().st_size > have else tries + 1
        if tries >= TRIES:
            raise cut(source.name, part.stat().st_size, source.size, last) from last
        if stop.wait(min(2**tries, 8) / 4):
            raise Stopped


def cut(name: str, have: int, size: int, error: Exception) -> HostError:
    """The transfer of a file broke and did not come back."""
    return HostError(
        msg(
            "the transfer of {file} broke at {have:.2f} of {size:.2f} GiB and did not come back: {reason}",
            file=name, have=have / 2**30, size=size / 2**30, reason=str(error) or type(error).__name__,
        ),
        hint=msg("Run the command again: it goes on where it stopped. A nearer mirror may help: HF_ENDPOINT."),
    )  # fmt: skip


@contextmanager
def _locked(part: Path, stop: threading.Event) -> Iterator[None]:
    """Hold `part` against other processes that fetch the same file; wait while one does."""
    while True:
        with part.open("ab") as holder:
            try:
                fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
                if stop.wait(0.5):
                    raise Stopped from error
                continue
            # The holder before us may have renamed or removed the file that we locked: then lock the new one.
            if part.exists() and _same(holder.fileno(), part):
                yield
                return


def _same(descriptor: int, path: Path) -> bool:
    one, two = os.fstat(descriptor), path.stat()
    return (one.st_dev, one.st_ino) == (two.st_dev, two.st_ino)


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def run_all(
    jobs: Sequence[Callable[[threading.Event], None]],
    meter: Meter,
    observer: TransferObserver,
    *,
    stop: threading.Event,
    workers: int = WORKERS,
    tick_s: float = 0.2,
) -> None:
    """Run the jobs on a few threads while `observer` hears of the progress; the first failure stops the others."""
    waiting, failures, lock = deque(jobs), list[BaseException](), threading.Lock()

    def work() -> None:
        while not stop.is_set():
            with lock:
                if not waiting:
                    return
                job = waiting.popleft()
            try:
                job(stop)
            except Stopped:
                return
            except BaseException as error:  # noqa: BLE001 - carried to the thread that asked, and raised there
                failures.append(error)
                stop.set()

    # Daemon threads: a read that hangs in the network must not keep the program from ending after Ctrl-C.
    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(workers, len(jobs)))]
    for thread in threads:
        thread.start()
    try:
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(tick_s / len(threads))
            observer.moved(meter.progress())
    finally:
        stop.set()
    if failures:
        raise failures[0]
