"""What is known of the mutants: which there are, which tests reach them, which died of what."""

import fnmatch
import json
import math
import random
from collections import Counter, defaultdict
from pathlib import Path

from mutmut.configuration import config

SAVE_EVERY = 25
NEIGHBOURS = 3  # how many files of tests a mutant that imports anew meets first
SECONDS_OF_ANY = 0.01  # that any test takes, besides its own
UNTESTED = 33  # mutmut's number


class Book:
    """What is known of the mutants: verdicts, the tests that reach them, what killed which."""

    def __init__(self, folder=Path()):
        self.metas = {
            path: json.loads(path.read_text())
            for package in config().source_paths
            for path in sorted((folder / package).glob("**/*.py.meta"))
        }
        stats = json.loads((folder / "mutmut-stats.json").read_text())
        self.tests = stats["tests_by_mangled_function_name"]
        self.seconds = stats["duration_by_test"]
        self.killers_file = folder / "killers.json"
        self.killers = defaultdict(Counter)
        if self.killers_file.exists():
            for place, killers in json.loads(self.killers_file.read_text()).items():
                self.killers[place].update(killers)
        self.unsaved = 0

    def verdicts(self):
        """Exit codes by mutant, None for those not tried."""
        return {
            key: code
            for meta in self.metas.values()
            for key, code in meta["exit_code_by_key"].items()
        }

    def tests_of(self, name):
        """Tests of the mutant's own package that reach it."""
        home = f"tests/{name.split('.')[0]}/"
        return [test for test in self.tests.get(function_of(name), ()) if test.startswith(home)]

    def rank(self, name):
        """A key to sort tests by: kills a second in this function, in this module; own, quick."""
        here, near = self.killers[function_of(name)], self.killers[module_of(name)]
        package, module = module_of(name).split(".")[:2]
        own = f"tests/{package}/test_{module}.py::"

        def key(test):
            seconds = self.seconds.get(test, 1.0)
            each = seconds + SECONDS_OF_ANY
            return -here[test] / each, -near[test] / each, not test.startswith(own), seconds

        return key

    def files_first(self, name):
        """Files of tests that a mutant meets first when it has to import them all anew."""
        package, module = module_of(name).split(".")[:2]
        near = Counter()
        for test, count in self.killers[module_of(name)].items():
            near[test.split("::")[0]] += count
        for test, count in self.killers[function_of(name)].items():
            near[test.split("::")[0]] += 1000 * count
        own = f"tests/{package}/test_{module}.py"
        files = [file for file, _ in near.most_common(NEIGHBOURS)]
        return files if own in files or not Path(own).exists() else [*files, own]

    def record(self, name, code, killer=None, seconds=0.0):
        for meta in self.metas.values():
            if name in meta["exit_code_by_key"]:
                meta["exit_code_by_key"][name] = code
                meta["durations_by_key"][name] = seconds
        if killer:
            self.killers[function_of(name)][killer] += 1
            self.killers[module_of(name)][killer] += 1
        self.unsaved += 1
        if self.unsaved >= SAVE_EVERY:
            self.save()

    def save(self):
        for path, meta in self.metas.items():
            path.write_text(json.dumps(meta, indent=4))
        self.killers_file.write_text(json.dumps(self.killers))
        self.unsaved = 0


def function_of(name):
    """`encoding.kafka.compiled.x_reader` of `encoding.kafka.compiled.x_reader__mutmut_7`."""
    return name.rpartition("__mutmut_")[0]


def module_of(name):
    return name.rpartition(".")[0]


def chosen(book, options):
    """The mutants that the command asks for, neighbours side by side."""
    verdicts = book.verdicts()
    names = list(verdicts)
    if options.names:
        names = [name for name in names if any(fnmatch.fnmatch(name, one) for one in options.names)]
    elif options.alive:
        names = [name for name in names if verdicts[name] in (0, UNTESTED)]
    if options.share < 100:
        names = drawn(names, options.share, options.seed)
    if not options.names and not options.alive:
        names = [name for name in names if verdicts[name] is None]
    return names


def drawn(names, share, seed):
    """So many per cent of each module, at random; a larger share holds every smaller one."""
    kept = set()
    for module in sorted({module_of(name) for name in names}):
        order = sorted(name for name in names if module_of(name) == module)
        random.Random(f"{seed} {module}").shuffle(order)  # noqa: S311 a sample
        kept |= set(order[: math.ceil(len(order) * share / 100)])
    return [name for name in names if name in kept]
