"""`python -m system_tests.broker`: the command `rolling-bounce broker`."""

import sys

from assignor.interrupts import run_program

if __name__ == "__main__":
    sys.argv.insert(1, "broker")
    run_program("rolling-bounce", "system_tests.cli.main")
