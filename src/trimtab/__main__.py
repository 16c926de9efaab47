"""Entry point of the `trimtab` command; answers `--version` without loading the command line."""

import gc
import sys

COLLECT_EVERY = 100_000
"""New objects between two collections: Python's 700 would have it walk again and again over modules that stay."""


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        from trimtab import __version__

        print(f"trimtab {__version__}")
        return
    gc.set_threshold(COLLECT_EVERY)
    try:
        from trimtab.cli.main import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # before or after the door's own: while modules load, or while it ends
        print("trimtab: interrupted", file=sys.stderr)
        code = 130
    gc.freeze()  # else the interpreter walks over every object once more before it ends
    sys.exit(code)


if __name__ == "__main__":
    main()
