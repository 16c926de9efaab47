"""A client's edits as a plan that can be shown, and its files replaced in one step each, with a way back."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from trimtab.connect.client import Change, FileEdit, read_bytes, read_text
from trimtab.connect.documents import ABSENT, Document, Form, Steps, opened, put
from trimtab.connect.storing import digest, replace
from trimtab.connect.undoing import Reversal, Written, keep
from trimtab.errors import HostError
from trimtab.messages import msg


class Planned(msgspec.Struct, frozen=True):
    """One file as it is (None: not there) and as it will be."""

    file: Path  # links followed
    form: Form
    before: str | None
    after: str
    reversals: tuple[Reversal, ...]
    secrets: tuple[str, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return self.before != self.after


def planned(edits: Sequence[FileEdit]) -> tuple[Planned, ...]:
    """What `edits` make of the files on disk. UsageError or HostError naming the file that cannot be changed."""
    return tuple(_planned(edit) for edit in edits)


def _planned(edit: FileEdit) -> Planned:
    file = _followed(edit.file)
    before = read_text(file)
    document = opened(edit.form, before or "", file)
    reversals: list[Reversal] = []
    secrets = _secrets(edit.changes, document)
    for change in edit.changes:
        old = document.get(change.path)
        if old == change.value:
            continue
        _apply(document, change.path, change.value, file)
        reversals.append(_reversal(change, old))
    after = document.text() if reversals else before or ""
    opened(edit.form, after, file)  # what cannot be read again is never written
    return Planned(file, edit.form, before, after, tuple(reversals), secrets)


def _reversal(change: Change, old: object) -> Reversal:
    was, is_set = old is not ABSENT, change.value is not ABSENT
    return Reversal(change.path, old if was else None, change.value if is_set else None, was, is_set, change.theirs)


def _apply(document: Document, path: Steps, value: object, file: Path) -> None:
    if value is ABSENT:
        document.remove(path)
    else:
        put(document, path, value, file)


def _followed(file: Path) -> Path:
    """The file behind links, so that a link of the user's stays one."""
    try:
        return file.resolve()
    except (OSError, RuntimeError) as error:  # links in a circle
        raise HostError(
            msg("cannot read {file}: {reason}", file=file, reason=str(error)), hint=msg("Mend the link.")
        ) from error


def _secrets(changes: Sequence[Change], before: Document) -> tuple[str, ...]:
    """The keys that are written, and those that stand there now."""
    values = [value for c in changes if c.secret for value in (c.value, before.get(c.path))]
    return tuple(value for value in values if isinstance(value, str) and value)


def diff(plan: Planned, *, mask: bool = True) -> str:
    """The change as a unified diff; "" where there is none. Keys are shown as three stars."""
    lines = difflib.unified_diff(
        (plan.before or "").splitlines(keepends=True), plan.after.splitlines(keepends=True),
        str(plan.file) if plan.before is not None else os.devnull, str(plan.file),
    )  # fmt: skip
    text = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    for secret in plan.secrets if mask else ():
        text = text.replace(secret, "***")
    return text


def write(plans: Sequence[Planned], store: Path) -> None:
    """Replace the files, each in one step; what was there is kept in `store` first. HostError where that fails."""
    for plan in plans:
        if not plan.changes:
            continue
        if read_text(plan.file) != plan.before:
            raise HostError(
                msg("{file} was changed by another program in the meantime", file=plan.file),
                hint=msg("End the program and run the command again; the file was not written."),
            )
        before = read_bytes(plan.file)
        after = plan.after.encode()
        keep(store, Written(str(plan.file), plan.form, before is not None, digest(after), plan.reversals), before)
        replace(plan.file, after)
