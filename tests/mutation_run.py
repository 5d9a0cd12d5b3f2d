"""Tries the mutants that `mutmut run` made, many a second. From `mutants/`, as `make mutate` does:

    python -m tests.mutation_run                         # all that were not tried yet
    python -m tests.mutation_run 'encoding.kafka.compiled*'        # these, tried or not
    python -m tests.mutation_run --alive                 # survivors, after new tests
    python -m tests.mutation_run --share 40 --seed 1     # 40 % of each module, drawn at random

mutmut starts pytest for each mutant, and runs its tests in no order. Here the tests are collected
once; a fork per mutant then runs those that reach it, first those that its neighbours died of, then
the quick ones, until one fails. Only a function that runs while `encoding`, `probing` or their
tests are imported has to be there before: its mutants import all of these anew, in a fork of a
process that has imported everything else. Verdicts go where mutmut keeps its own.

A mutant dies of a failed test, of an import that breaks, of `SECONDS_MORE` seconds of processor
time more than its test needed before, or of `MEMORY_MAX` bytes. It is judged by the tests of its
own package.
"""

import argparse
import compileall
import gc
import json
import math
import os
import resource
import sys
from importlib import import_module

import pytest
from mutmut.configuration import config as mutmut_config
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state as mutmut_state

from tests.mutation_book import UNTESTED, Book, chosen, function_of

OURS = ("encoding", "probing", "assignor", "fuzz", "tests", "docs", "benchmarks", "system_tests")
SECONDS_MORE, SECONDS_TO_IMPORT = 3, 20
MEMORY_MAX = 6 << 30


def race(names, attempt, book, children, title):
    """Fork for each mutant and note what became of it; `attempt(name, pipe)` runs in the fork."""
    running = {}
    for number, name in enumerate(names, 1):
        while len(running) >= children:
            _reap(running, book)
        if number % 100 == 0:
            print(f"{title}: {number} of {len(names)}", flush=True)
        pipe, killer = os.pipe()
        child = os.fork()
        if child == 0:
            code = 3
            try:
                os.close(pipe)
                _be_quiet()
                allow(SECONDS_TO_IMPORT)
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
                set_mutant_under_test(name)
                code = attempt(name, killer)
            finally:
                os._exit(code)
        os.close(killer)
        running[child] = (name, pipe)
    while running:
        _reap(running, book)
    book.save()


def _reap(running, book):
    child, status, usage = os.wait4(-1, 0)
    name, pipe = running.pop(child)
    with os.fdopen(pipe) as said:
        killer = said.read()
    book.record(name, os.waitstatus_to_exitcode(status), killer, usage.ru_utime + usage.ru_stime)


def _be_quiet():
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def allow(seconds):
    """Let this process have so many seconds of processor time from now on, and no more."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    until = math.ceil(usage.ru_utime + usage.ru_stime + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))


class Collected:
    """Collects once, then forks for each mutant instead of running the tests."""

    def __init__(self, names, book, children):
        self.names, self.book, self.children = names, book, children

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        items = {item.nodeid: item for item in session.items}
        gc.collect()
        gc.freeze()

        def attempt(name, killer):
            tests = sorted(self.book.tests_of(name), key=self.book.rank(name))
            chosen = [items[test] for test in tests if test in items]
            for item, following in zip(chosen, [*chosen[1:], None], strict=True):
                allow(SECONDS_MORE + 5 * self.book.seconds.get(item.nodeid, 1.0))
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if session.testsfailed:
                    os.write(killer, item.nodeid.encode())
                    return 1
            return 0

        race(self.names, attempt, self.book, self.children, "tests collected once")
        return True


class Anew:
    """Orders the tests of one mutant that imports everything anew, and says which one failed."""

    def __init__(self, name, book, killer, met=frozenset()):
        self.book, self.killer, self.met = book, killer, met
        self.rank = book.rank(name)

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if item.nodeid.split("::")[0] not in self.met]
        items.sort(key=lambda item: self.rank(item.nodeid))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item):
        allow(SECONDS_MORE + 5 * self.book.seconds.get(item.nodeid, 1.0))

    def pytest_runtest_logreport(self, report):
        if report.failed:
            os.write(self.killer, report.nodeid.encode())


class Scout:
    """Notes which functions run before the first test, and which modules are imported by then."""

    def __init__(self, pipe):
        self.pipe = pipe

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self):
        modules = [name for name in sys.modules if name.split(".")[0] not in OURS]
        found = {"early": sorted(mutmut_state()._stats), "modules": modules}
        os.write(self.pipe, json.dumps(found).encode())
        return True


def pytest_main(selection, plugin):
    arguments = ["--rootdir=.", "--tb=no", "-x", "-q", "-s", "-p", "no:randomly", *selection]
    return int(pytest.main([*arguments, *mutmut_config().pytest_add_cli_args], plugins=[plugin]))


def scout(selection):
    """Functions that run at import, and the modules that are imported, not counting our own."""
    out, pipe = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(out)
        _be_quiet()
        set_mutant_under_test("stats")
        os._exit(pytest_main(selection, Scout(pipe)))
    os.close(pipe)
    with os.fdopen(out) as said:
        text = said.read()
    os.waitpid(child, 0)
    found = json.loads(text)
    return set(found["early"]), found["modules"]


def try_early(names, book, children, selection):
    """Mutants of functions that run at import: nothing of ours is imported before the fork."""

    def attempt(name, killer):
        home = [folder for folder in selection if folder == f"tests/{name.split('.')[0]}"]
        first = book.files_first(name)
        code = pytest_main(first, Anew(name, book, killer)) if first else pytest.ExitCode.OK
        if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            allow(SECONDS_TO_IMPORT)
            code = pytest_main(home, Anew(name, book, killer, frozenset(first)))
        return int(code)

    gc.collect()
    gc.freeze()
    race(names, attempt, book, children, "everything imported anew")


def try_late(names, book, children, selection):
    """All others. In a fork, since the tests must not stay imported in this process."""
    child = os.fork()
    if child == 0:
        set_mutant_under_test("")
        os._exit(pytest_main(selection, Collected(names, book, children)))
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="patterns of mutants, tried or not")
    parser.add_argument("--alive", action="store_true", help="survivors again")
    parser.add_argument("--share", type=float, default=100, help="per cent of each module")
    parser.add_argument("--seed", type=int, default=1, help="of the draw (default 1)")
    parser.add_argument("--children", type=int, default=2, help="at a time (default 2)")
    options = parser.parse_args()
    selection = mutmut_config().pytest_add_cli_args_test_selection
    sys.dont_write_bytecode = False
    for package in mutmut_config().source_paths:
        compileall.compile_dir(package, quiet=1)
    early, modules = scout(selection)
    book = Book()
    names = chosen(book, options)
    for name in names:
        if not book.tests_of(name):
            book.record(name, UNTESTED)
    names = [name for name in names if book.tests_of(name)]
    late = [name for name in names if function_of(name) not in early]
    if late:
        try_late(late, book, options.children, selection)
        book = Book()
    for module in modules:
        try:
            import_module(module)
        except ImportError:  # a module that someone put there under another's name
            continue
    try_early([n for n in names if function_of(n) in early], book, options.children, selection)
    book.save()
    return 0


if __name__ == "__main__":
    sys.exit(main())
