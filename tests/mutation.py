"""A pytest plugin for `make mutate`: what a mutant needs to be judged fairly, and soon.

Hypothesis draws the same few examples each time and does not shrink what it finds. A mutant that
breaks an import is as dead as one that fails a test. And functions that run when `encoding` is
imported, such as those that make the plans of a version, are tested by every test, not only by the
one that happens to come first.
"""

import gc
import os

import pytest
from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "mutate",
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


class _Imported:
    """Remembers what ran before the first test, and says so for every test."""

    def __init__(self):
        self.functions = set()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self):
        from mutmut.state import state  # noqa: PLC0415 only there while mutmut runs

        self.functions = set(state()._stats)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self):
        from mutmut.state import state  # noqa: PLC0415 as above

        state()._stats |= self.functions


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    gc.freeze()  # pytest collects garbage thoroughly when it ends: half the time of a mutant
    settings.load_profile("mutate")
    if os.environ.get("MUTANT_UNDER_TEST") == "stats":
        config.pluginmanager.register(_Imported())


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if session.exitstatus == pytest.ExitCode.INTERRUPTED:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
