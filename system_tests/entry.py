"""The entry point of `rolling-bounce`."""

from typing import NoReturn

from assignor.interrupts import run_program


def main() -> NoReturn:
    """Run the program."""
    run_program("rolling-bounce", "system_tests.cli.main")


if __name__ == "__main__":
    main()
