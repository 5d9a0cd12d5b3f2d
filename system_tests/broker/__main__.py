"""`python -m system_tests.broker`: runs an embedded broker until it is stopped."""

from assignor.interrupts import run_program

if __name__ == "__main__":
    run_program("system_tests.broker", "system_tests.broker.command")
