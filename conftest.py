"""Hypothesis profiles, the tests of the day, the order of tests, the check of the ledger."""

import gc
import operator
import os

import pytest
from hypothesis import HealthCheck, settings

from tests import rotation
from tests.ledger import read_marks, read_rows

pytest_plugins = ["tests.encoding.golden_summary", "tests.leftovers"]

settings.register_profile("dev", max_examples=rotation.examples(50), deadline=None)
# The examples of the day: `pytest_configure` gives them their seed.
settings.register_profile(
    "ci",
    max_examples=rotation.examples(50),
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "nightly",
    max_examples=500,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
# How fast inputs are drawn is the machine's business, here as in CI.
settings.register_profile(
    "quick", max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE")
    or ("nightly" if rotation.is_nightly() else "ci" if os.environ.get("CI") else "dev")
)
# A fixture that is dear, and the folder of tests that start the same by themselves: all of them go
# to one worker, and begin first.
DEAR = "spark"
DEAR_FOLDER = "tests/spark_assign/"
USAGE_ERROR = "usage error"
WORLDS = frozenset({"core", "sim", "loop", "real"})


def pytest_addoption(parser):
    parser.addoption(
        "--ledger",
        nargs="?",
        const="core,sim,loop",
        metavar="ENVIRONMENTS",
        help="fail when a test that proves a done row of tests/kips.toml in one of these"
        " environments (all but `real` by itself) did not pass",
    )


class _Ledger:
    """Collects outcomes on the controller (xdist sends reports there)."""

    def __init__(self, worlds):
        self.worlds = worlds
        self.outcomes = {}

    def pytest_runtest_logreport(self, report):
        test = report.nodeid.split("[")[0].split("@")[0]  # behind "@" the group of one worker
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
        found = [o for t, o in self.outcomes.items() if t == test or t.startswith(f"{test}::")]
        return set().union(*found) if found else {"not run"}

    def pytest_terminal_summary(self, terminalreporter):
        for line in self.missing():
            terminalreporter.write_line(f"ledger: {line}", red=True)


def pytest_report_header():
    return rotation.describe()


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config, items):
    """Leave tests of other days out, and share the rest out among workers."""
    proofs = [i.nodeid for i in items if is_in_part(i) and has(i, "kip")]
    if proofs:
        error = f"these prove rows of the ledger, and are never left out: {proofs}"
        if not hasattr(config, "workeroutput"):
            raise pytest.UsageError(error)
        config.workeroutput[USAGE_ERROR] = error  # `_WorkerErrors` raises it
        items.clear()
    left_out = {i for i in items if has(i, "nightly") and not rotation.is_taken(i.nodeid)}
    left_out.update(of_other_days(items))
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]
    if os.environ.get("PYTEST_XDIST_WORKER"):
        items[:] = shared_out(items)


def pytest_collection_finish():
    """Take what was collected out of garbage collection: ten thousand tests live to the end.

    Otherwise each full collection, of which some tests cause several, looks at all of them.
    """
    gc.collect()
    gc.freeze()


def of_other_days(items):
    """Tests that take turns and that this run leaves out; of each group at least one remains."""
    groups = {}
    for item in items:
        turn = turn_of(item)
        if turn is not None:
            groups.setdefault(turn, []).append(item)
    left_out = []
    for (name, parts), tests in groups.items():
        taken = set(rotation.tests_of_the_day(tests, parts=parts, name=name))
        left_out += [item for item in tests if item not in taken]
    return left_out


def turn_of(item):
    """The tests that this one takes turns with, and the days that all take; None: every day.

    Slow tests that prove no row of the ledger take turns with each other, and so do those with a
    Spark session, whose JVM takes a quarter of the processor time of all tests, and those with real
    brokers or members, each of its parameters by itself.
    """
    if has(item, "nightly"):
        return None
    mark = item.get_closest_marker("rotated")
    is_daily = has(item, "kip") or (mark is not None and mark.args == (1,))
    if has(item, "real") and not is_daily:
        return ("real tests", rotation.SLOW_PARTS)
    test = item.nodeid.partition("[")[0]
    if mark is not None:
        parts, *group = mark.args
        return (*group, parts) if group else (test, parts)
    if has(item, "kip"):
        return None
    if DEAR in getattr(item, "fixturenames", ()):
        return ("tests with Spark", rotation.SLOW_PARTS)
    return ("slow tests", rotation.SLOW_PARTS) if has(item, "slow") else None


def is_in_part(item):
    """Whether a whole test may be left out of a run, not only some of its parameters."""
    mark = item.get_closest_marker("rotated")
    return has(item, "nightly") or (mark is not None and len(mark.args) > 1)


def has(item, mark):
    return item.get_closest_marker(mark) is not None


def shared_out(items):
    """Groups that one worker runs: tests of processes one by one, others by file; in their order.

    Tests that wait for processes and files that compute take turns, so that a machine with fewer
    cores than workers has both at any time; files with slow tests come first.
    """
    dear, waiting, files = [], [], {}
    for item in items:
        is_dear = item.nodeid.startswith(DEAR_FOLDER)
        if is_dear or DEAR in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group(DEAR))
            dear.append(item)
        elif has(item, "loop") or has(item, "real"):
            waiting.append(item)
        else:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
            files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    by_slowness = sorted(files.values(), key=lambda tests: -sum(has(t, "slow") for t in tests))
    turns = [((n + 0.5) / len(waiting), [item]) for n, item in enumerate(waiting)]
    turns += [((n + 0.5) / len(by_slowness), tests) for n, tests in enumerate(by_slowness)]
    return dear + [item for _, tests in sorted(turns, key=operator.itemgetter(0)) for item in tests]


class _WorkerErrors:
    """Raises on the controller what is wrong with the tests that a worker collected."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        error = getattr(node, "workeroutput", {}).get(USAGE_ERROR)
        if error:
            raise pytest.UsageError(error)


@pytest.hookimpl(tryfirst=True)  # before the plugin of Hypothesis reads its seed
def pytest_configure(config):
    try:
        rotation.rotation()  # into the environment, before workers are started
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    if settings.get_current_profile_name() == "ci" and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = rotation.rotation()
    config.pluginmanager.register(_WorkerErrors(), "worker errors")
    if config.getoption("--ledger") is not None and not hasattr(config, "workerinput"):
        worlds = config.getoption("--ledger").split(",")
        if unknown := sorted(set(worlds) - WORLDS):
            raise pytest.UsageError(
                f"--ledger={','.join(worlds)}: unknown environment {unknown[0]!r}; choose from"
                f" {', '.join(sorted(WORLDS))}"
            )
        config.pluginmanager.register(_Ledger(worlds), "ledger")
