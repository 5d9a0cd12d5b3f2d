"""The entry point of `assignor`."""

from typing import NoReturn

from assignor.interrupts import run_program


def main() -> NoReturn:
    """Run the program."""
    run_program("assignor", "assignor.cli.main")


if __name__ == "__main__":
    main()
