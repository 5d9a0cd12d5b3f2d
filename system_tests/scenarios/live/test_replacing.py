"""All brokers are replaced in the middle of a bounce; the bounce continues, no record is lost."""

import pytest

pytestmark = pytest.mark.timeout(900)
_REPLACED = "all brokers are replaced by new ones"


@pytest.mark.slow
def test_a_bounce_of_both_clients_goes_on_when_all_brokers_are_replaced(bounce):
    run = bounce("--from 3.1 --to native --replace-brokers --members 2 --client mixed --verbose")
    assert (run.status, run.failed()) == (0, [])
    assert run.numbers("records")["missing"] == 0
    trace = run.stderr.splitlines()
    at = next(number for number, line in enumerate(trace) if _REPLACED in line)
    again = [line for line in trace[at:] if "goes back to its bootstrap servers" in line]
    assert {line.split(" goes back")[0].split()[-1] for line in again} == {"a", "b"}


@pytest.mark.parametrize(
    ("rest", "sentence"),
    [
        ("--broker kafka:3.9", "needs the embedded brokers"),
        ("--bootstrap-server localhost:1", "needs the embedded brokers"),
        ("--offline", "needs a rolling bounce"),
    ],
)
def test_what_cannot_be_replaced_is_refused(bounce, rest, sentence):
    run = bounce(f"--from 3.1 --to native --replace-brokers {rest}")
    assert run.status == 2
    assert sentence in run.stderr
