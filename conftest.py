"""Hypothesis profiles, nightly tests, lanes and order of tests, the check of the ledger."""

import gc
import os
import random
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import nightly
from tests.ledger import read_marks, read_rows

# What a terminal of the user has; a test that is about one sets it itself.
for name in ("COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
    os.environ.pop(name, None)

pytest_plugins = ["tests.encoding.golden_summary", "tests.lanes", "tests.leftovers"]

# The same examples in each run, on any machine; how fast they are drawn is the machine's business.
settings.register_profile(
    "test",
    max_examples=nightly.examples(50),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("test"), max_examples=8)
settings.register_profile(
    "nightly",
    max_examples=500,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("nightly" if nightly.is_nightly() else "test")
)
# A fixture that takes long to make: all tests with it go to one worker, and begin first.
SPARK = "spark"
USAGE_ERROR = "usage error"
WORLDS = frozenset({"core", "sim", "loop", "real"})


def pytest_addoption(parser):
    parser.addoption(
        "--ledger",
        nargs="?",
        const="core,sim,loop",
        metavar="ENVIRONMENTS",
        help="fail when a test of this run that proves a done row of tests/kips.toml in one of"
        " these environments (all but `real` by itself) did not pass",
    )
    parser.addoption(
        "--verdict",
        metavar="FILE",
        help="write the exit status to a file, which a run that ends early does not",
    )
    parser.addoption(
        "--shuffle",
        type=int,
        metavar="SEED",
        help="run the tests in a random order, which follows from the seed",
    )


class _Outcomes:
    """Collects outcomes on the controller (xdist sends reports there); none may be missing.

    Args:
        verdict: a file for the exit status: that of the process is 0 if a test calls os._exit(0).
    """

    def __init__(self, verdict):
        self.verdict = verdict and Path(verdict)
        self.outcomes = {}
        if self.verdict:
            self.verdict.unlink(missing_ok=True)

    def pytest_collection_finish(self, session):
        self._expect(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids):
        self._expect(ids)

    def _expect(self, ids):
        for name in ids:
            self.outcomes.setdefault(_without_group(name), set())

    def pytest_runtest_logreport(self, report):
        outcomes = self.outcomes.setdefault(report.nodeid, set())  # by `_Workers` without a group
        if report.when == "call" or report.outcome != "passed":
            outcomes.add(report.outcome)

    def unreported(self):
        return [test for test, outcomes in self.outcomes.items() if not outcomes]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session):
        is_run = not session.config.getoption("collectonly")
        if is_run and session.exitstatus == 0 and self.unreported():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self.verdict:
            self.verdict.write_text(f"{int(session.exitstatus)}\n", encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter, config):
        if (tests := self.unreported()) and not config.getoption("collectonly"):
            terminalreporter.write_line(f"{len(tests)} tests did not run, as {tests[0]}", red=True)


class _Ledger:
    """Compares outcomes with the rows of the ledger."""

    def __init__(self, worlds, outcomes):
        self.worlds = worlds
        self.outcomes = outcomes

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session):
        if self.results()[1] and session.exitstatus == 0:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def results(self):
        """Return the marks of this run's tests that are proved, and a line for each other one."""
        done = {row.id for row in read_rows() if row.state == "done"}
        proved, missing = [], []
        for mark in read_marks():
            if mark.row not in done or mark.world not in self.worlds:
                continue
            found = [
                outcomes
                for test, outcomes in self.outcomes.items()
                if (name := test.split("[")[0]) == mark.test or name.startswith(f"{mark.test}::")
            ]
            if not found:  # of another lane
                continue
            outcome = set().union(*found)
            if outcome == {"passed"}:
                proved.append(mark)
            else:
                result = sorted(outcome or {"not run"})
                missing.append(f"{mark.row} ({mark.world}): {mark.test} {result}")
        return proved, missing

    def pytest_terminal_summary(self, terminalreporter):
        proved, missing = self.results()
        rows = {(mark.row, mark.world) for mark in proved}
        terminalreporter.write_line(
            f"ledger: {len(proved)} proofs of {len(rows)} pairs of row and environment passed"
        )
        for line in missing:
            terminalreporter.write_line(f"ledger: {line}", red=True)


def _without_group(node_id):
    """Behind the last "@" is the group of one worker: a file, or that of a fixture."""
    return re.sub(rf"@({SPARK}|[^@\[\]]*\.py)$", "", node_id)


def _test_of(node_id):
    return node_id.split("[")[0]


def pytest_report_header():
    return (
        "make nightly: all tests, all examples"
        if nightly.is_nightly()
        else "without tests marked nightly, see tests/nightly.md (NIGHTLY=1 runs them)"
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)  # when all plugins have given their parameters
def pytest_generate_tests(metafunc):
    result = yield
    nightly.check_ids(metafunc)
    return result


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups, and before -m selects by marks
def pytest_collection_modifyitems(config, items):
    """Mark the lanes, deselect what only `make nightly` runs, distribute the rest over workers."""
    for item in items:
        for lane in ("clock", "alone"):
            if lane in getattr(item, "fixturenames", ()):
                item.add_marker(lane)
    try:
        left_out = nightly_only(items)
    except ValueError as error:
        if not hasattr(config, "workeroutput"):
            raise pytest.UsageError(str(error)) from None
        config.workeroutput[USAGE_ERROR] = str(error)  # `_Workers` raises it
        left_out = set(items)
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]
    if os.environ.get("PYTEST_XDIST_WORKER"):
        items[:] = shared_out(items)
    seed = config.getoption("--shuffle")
    if seed is not None:
        random.Random(seed).shuffle(items)  # noqa: S311 an order, not a secret


def nightly_only(items):
    """Return the tests that this run leaves to `make nightly`.

    Raises:
        ValueError: a mark gives no reason, all of a test that proves a row or all of the run would
            be left out, or a fixture has the name of a lane.
    """
    left_out = set()
    for item in items:
        for lane in ("clock", "alone"):
            if len(item._fixtureinfo.name2fixturedefs.get(lane, ())) > 1:
                raise ValueError(f"{item.nodeid}: its fixture {lane} hides that of tests/lanes.py")
        if nightly.is_left(item):
            left_out.add(item)
    if items and len(left_out) == len(items):
        raise ValueError("all of these tests are marked nightly: set NIGHTLY=1 to run them")
    proofs = {_test_of(item.nodeid) for item in items if has(item, "kip")}
    kept = {_test_of(item.nodeid) for item in items if item not in left_out}
    if proofs - kept:
        test = min(proofs - kept)
        raise ValueError(f"{test} proves a row of the ledger, and is never left out")
    return left_out


def pytest_collection_finish():
    """Take what was collected out of garbage collection: ten thousand tests live to the end.

    Otherwise each full collection, of which some tests cause several, looks at all of them.
    """
    gc.collect()
    gc.freeze()


def has(item, mark):
    return item.get_closest_marker(mark) is not None


def shared_out(items):
    """Groups that one worker runs: tests with a clock one by one, others by file; in their order.

    Files with slow tests come first. Tests whose file names groups (`xdist_group`) keep them.
    """
    with_spark, with_clock, files = [], [], {}
    for item in items:
        if SPARK in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group(SPARK))
            with_spark.append(item)
        elif has(item, "clock"):
            with_clock.append(item)
        else:
            if not has(item, "xdist_group"):
                item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
            files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    by_slowness = sorted(files.values(), key=lambda tests: -sum(has(t, "slow") for t in tests))
    return with_spark + [item for tests in by_slowness for item in tests] + with_clock


class _Workers:
    """Raises on the controller what is wrong with a worker's tests; ids without their group."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):
        if getattr(report, "node", None):
            report.nodeid = _without_group(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        error = getattr(node, "workeroutput", {}).get(USAGE_ERROR)
        if error:
            raise pytest.UsageError(error)


def pytest_configure(config):
    config.pluginmanager.register(_Workers(), "workers")
    if hasattr(config, "workerinput"):
        return
    outcomes = _Outcomes(config.getoption("--verdict"))
    config.pluginmanager.register(outcomes, "outcomes")
    if config.getoption("--ledger") is not None:
        worlds = config.getoption("--ledger").split(",")
        if unknown := sorted(set(worlds) - WORLDS):
            raise pytest.UsageError(
                f"--ledger={','.join(worlds)}: unknown environment {unknown[0]!r}; choose from"
                f" {', '.join(sorted(WORLDS))}"
            )
        config.pluginmanager.register(_Ledger(worlds, outcomes.outcomes), "ledger")
