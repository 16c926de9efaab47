"""Show a model's download as the progress of a long task: bytes, rate and what is left."""

from __future__ import annotations

from trimtab.facts.probe.transfer import Progress as Moved
from trimtab.messages import Message, msg
from trimtab.supervisor.progress import Observer, Progress


class ShownDownload:
    """A `TransferObserver` that tells `show` (of `cli.progress.drawn`) about the download of `model`."""

    def __init__(self, model: str, show: Observer) -> None:
        self._model, self._show = model, show

    def moved(self, progress: Moved) -> None:
        phase, speed = msg("downloading {model}", model=self._model), rate(progress)
        self._show(Progress(phase, speed and f"({speed})", progress.done_bytes, progress.total_bytes, "B"))

    def noted(self, note: Message) -> None:
        self._show(Progress(note))


def rate(progress: Moved) -> str:
    """Bytes per second and the time that is left at this rate: "12.5 MB/s, 3 min"; "" while nothing moves."""
    if progress.bytes_per_s < 1:
        return ""
    left_s = (progress.total_bytes - progress.done_bytes) / progress.bytes_per_s
    speed = f"{progress.bytes_per_s / 1e6:.1f} MB/s"
    if left_s < 1:
        return speed
    return f"{speed}, {left_s:.0f} s" if left_s < 90 else f"{speed}, {left_s / 60:.0f} min"
