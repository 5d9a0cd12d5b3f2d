"""What `tests.stress` reads from the lines of pytest."""

import pytest
from click.testing import CliRunner

from tests import stress
from tests.stress import command_of, read_result

LINES = """
[gw0] [  1%] PASSED tests/a.py::test_first[a b]
[gw1] [  2%] PASSED tests/b.py::test_other
[gw0] [  3%] FAILED tests/a.py::test_second
[gw1] [  4%] SKIPPED tests/b.py::test_skipped
[gw0] [  5%] PASSED tests/a.py::test_second_again
[gw0] [  5%] ERROR tests/a.py::test_second_again
=== short test summary info ===
FAILED tests/a.py::test_second - AssertionError
"""


def test_a_failure_has_the_tests_before_it_in_its_process():
    result = read_result("clock", 7, 1, LINES)
    assert (result.passed, result.skipped) == (3, 1)
    first, second = result.failures
    assert first == ("tests/a.py::test_second", ("tests/a.py::test_first[a",))
    assert second[0] == "tests/a.py::test_second_again"


def test_a_run_is_repeated_by_its_seed():
    assert command_of("clock", 7, 2, ["tests/a.py"])[-5:] == [
        "-n",
        "2",
        "--shuffle",
        "7",
        "tests/a.py",
    ]
    result = read_result("alone", 1, 0, "tests/a.py::test_it PASSED   [100%]\n")
    assert (result.passed, result.failures) == (1, ())


@pytest.mark.usefixtures("clock")
def test_a_lane_is_printed_when_it_has_ended(monkeypatch):
    def run_lane(lane, seed, workers, tests):
        if lane == "alone":
            raise RuntimeError("stopped")
        return read_result(lane, seed, 1, LINES)

    monkeypatch.setattr(stress, "run_lane", run_lane)
    ended = CliRunner().invoke(stress.main, ["--load", "0", "--from-seed", "7"])
    assert str(ended.exception) == "stopped"
    assert "seed 7, clock: 3 passed, 1 skipped, 2 failed" in ended.output
    assert "repeat: python -m pytest -m 'clock and not alone and not real'" in ended.output
