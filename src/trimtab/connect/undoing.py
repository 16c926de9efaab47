"""The way back: what stood in a client's files before Trimtab wrote, and how it is put there again.

A file that nobody changed since gets its bytes of before. In one that was changed since, our values alone are taken
back, where they still stand; where one does not, nothing is touched and the file is named.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from trimtab.connect.client import read_bytes
from trimtab.connect.documents import ABSENT, Form, Steps, opened, put, shown
from trimtab.connect.storing import digest, replace
from trimtab.errors import HostError, UsageError
from trimtab.messages import msg

RECORD = "written.json"


class Reversal(msgspec.Struct, frozen=True):
    """One value: what it was, what Trimtab made of it. `was`, `is_set` False: there was, there is none."""

    path: Steps
    before: Any = None
    after: Any = None
    was: bool = True
    is_set: bool = True
    theirs: bool = False  # the client changes it by itself


class Written(msgspec.Struct, frozen=True):
    """One file that was written. `exact`: the backup is what the first writing found, and undoes all of them."""

    file: str
    form: Form
    existed: bool
    digest: str  # of what Trimtab wrote
    reversals: tuple[Reversal, ...]
    backup: str = ""
    exact: bool = True


class Undone(msgspec.Struct, frozen=True):
    """What became of one file: "restored" byte for byte, "removed", "values" taken back, or "same": it was undone."""

    file: str
    how: str


def keep(store: Path, new: Written, before: bytes | None) -> None:
    """Note what is about to be written, and the bytes that it replaces, in `store`, for their owner alone."""
    found = _read(store)
    earlier = found.get(new.file)
    if earlier is not None and before is not None:
        unchanged = earlier.exact and digest(before) == earlier.digest
        merged = _merged(earlier.reversals, new.reversals)
        if unchanged:
            new = msgspec.structs.replace(new, existed=earlier.existed, backup=earlier.backup, reversals=merged)
        elif digest(before) == earlier.digest or _still(before, earlier):
            new = msgspec.structs.replace(new, existed=True, exact=False, reversals=merged)
    if new.existed and not new.backup:
        new = msgspec.structs.replace(new, backup=f"{len(found)}-{digest(before or b'')[:16]}")
        replace(store / new.backup, before or b"")
    _write(store, {**found, new.file: new})


def _still(before: bytes, earlier: Written) -> bool:
    """Whether any value of an earlier writing still stands, so that undoing must reach behind it."""
    document = opened(earlier.form, before.decode(), Path(earlier.file))
    return any(_stands(document.get(one.path), one) for one in earlier.reversals)


def _merged(earlier: tuple[Reversal, ...], new: tuple[Reversal, ...]) -> tuple[Reversal, ...]:
    """The oldest value of each path beside the newest."""
    by_path = {one.path: one for one in earlier}
    for one in new:
        old = by_path.pop(one.path, None)
        kept = one if old is None else msgspec.structs.replace(one, before=old.before, was=old.was)
        by_path[one.path] = kept
    return tuple(by_path.values())


def undo(store: Path) -> tuple[Undone, ...]:
    """Put every file of the last writing back. UsageError where none was written, or one cannot be taken back."""
    found = _read(store)
    if not found:
        raise UsageError(
            msg("nothing was written for this client that could be undone"),
            hint=msg("trimtab connect CLIENT --write writes its configuration."),
        )
    steps = [(written, _undone(store, written)) for written in found.values()]  # all are judged before one is touched
    for written, (_, data) in steps:
        _put_back(Path(written.file), data)
    (store / RECORD).unlink(missing_ok=True)
    for written in found.values():
        if written.backup:
            (store / written.backup).unlink(missing_ok=True)
    return tuple(Undone(written.file, how) for written, (how, _) in steps)


def _undone(store: Path, written: Written) -> tuple[str, bytes | None]:
    """How the file is undone, and its bytes then; None where it is no more."""
    now = read_bytes(Path(written.file))
    backup = read_bytes(store / written.backup) if written.backup else None
    if written.existed and backup is None:
        raise HostError(
            msg("the backup of {file} is gone: {backup}", file=written.file, backup=store / written.backup),
            hint=msg("Edit the file by hand."),
        )
    if now == backup:
        return "same", backup
    if now is not None and digest(now) == written.digest and written.exact:
        return ("restored", backup) if written.existed else ("removed", None)
    if now is None:
        raise _changed(written, msg("the file is gone"), store)
    return "values", _taken_back(now, written, store)


def _taken_back(now: bytes, written: Written, store: Path) -> bytes:
    file = Path(written.file)
    document = opened(written.form, now.decode("utf-8", errors="surrogateescape"), file)
    for one in written.reversals:
        if not _stands(document.get(one.path), one):
            raise _changed(written, msg("{path} holds another value", path=shown(one.path)), store)
    for one in reversed(written.reversals):
        if one.was:
            put(document, one.path, one.before, file)
        else:
            document.remove(one.path)
    return document.text().encode("utf-8", errors="surrogateescape")


def _stands(found: object, one: Reversal) -> bool:
    return one.theirs or (found == one.after if one.is_set else found is ABSENT)


def _changed(written: Written, reason: object, store: Path) -> UsageError:
    where = store / written.backup if written.backup else store / RECORD
    return UsageError(
        msg(
            "{file} was changed since Trimtab wrote it, and is left as it is: {reason}",
            file=written.file,
            reason=reason,
        ),
        hint=msg("Edit it by hand; what was there before is in {backup}", backup=where),
    )


def _put_back(file: Path, data: bytes | None) -> None:
    if data is not None:
        replace(file, data)
    else:
        file.unlink(missing_ok=True)


def _read(store: Path) -> dict[str, Written]:
    data = read_bytes(store / RECORD)
    if data is None:
        return {}
    try:
        return msgspec.json.decode(data, type=dict[str, Written])
    except msgspec.MsgspecError as error:
        raise HostError(
            msg("cannot read {file}: {reason}", file=store / RECORD, reason=str(error)),
            hint=msg("The backups lie beside it; move the directory away to write anew."),
        ) from error


def _write(store: Path, found: dict[str, Written]) -> None:
    replace(store / RECORD, msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
