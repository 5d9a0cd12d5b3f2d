"""The entry point of `spark-assign`."""

from typing import NoReturn

from assignor.interrupts import run_program


def main() -> NoReturn:
    """Run the program."""
    run_program("spark-assign", "spark_assign.cli.main")


if __name__ == "__main__":
    main()
