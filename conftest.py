"""Hypothesis profiles, and the check of the ledger."""

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.ledger import read_marks, read_rows

pytest_plugins = ["tests.encoding.golden_summary"]

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile(
    "ci",
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# How fast inputs are drawn is the machine's business, here as in CI.
settings.register_profile(
    "quick", max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev")
)


def pytest_addoption(parser):
    parser.addoption(
        "--ledger",
        nargs="?",
        const="core,sim,loop",
        metavar="WORLDS",
        help="fail when a test that proves a done row of tests/kips.toml in one of these worlds "
        "(all but `real` by itself) did not pass",
    )


class _Ledger:
    """Collects outcomes on the controller (xdist sends reports there)."""

    def __init__(self, worlds):
        self.worlds = worlds
        self.outcomes = {}

    def pytest_runtest_logreport(self, report):
        test = report.nodeid.split("[")[0]
        if report.when == "call" or report.outcome != "passed":
            self.outcomes.setdefault(test, set()).add(report.outcome)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session):
        missing = self.missing()
        if missing and session.exitstatus == 0:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def missing(self):
        done = {row.id for row in read_rows() if row.state == "done"}
        return [
            f"{mark.row} ({mark.world}): {mark.test} {sorted(self._outcome(mark.test))}"
            for mark in read_marks()
            if mark.row in done
            and mark.world in self.worlds
            and self._outcome(mark.test) != {"passed"}
        ]

    def _outcome(self, test):
        name = test.rsplit("::", 1)[-1]
        path = test.split("::")[0]
        found = [
            o for t, o in self.outcomes.items() if t.startswith(path) and name in t.split("::")
        ]
        return set().union(*found) if found else {"not run"}

    def pytest_terminal_summary(self, terminalreporter):
        for line in self.missing():
            terminalreporter.write_line(f"ledger: {line}", red=True)


def pytest_configure(config):
    if config.getoption("--ledger") and not hasattr(config, "workerinput"):
        worlds = config.getoption("--ledger").split(",")
        config.pluginmanager.register(_Ledger(worlds), "ledger")
