"""Entry point of the `trimtab` command; answers `--version` without loading the command line."""

import sys


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        from trimtab import __version__

        print(f"trimtab {__version__}")
        return
    from trimtab.cli.main import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
