"""Reads the data files that stand in the package; the pure rooms read nothing else.

Not through importlib.resources, which loads zipfile and tempfile first: a tenth of a short command's time.
"""

from __future__ import annotations

import pkgutil


def read(package: str, name: str) -> bytes:
    """The bytes of file `name` (a path with /) beside the modules of `package`."""
    found = pkgutil.get_data(package, name)
    if found is None:
        raise FileNotFoundError(f"{package} has no {name}")
    return found
