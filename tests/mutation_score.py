"""The score of `make mutate`, module by module: `python -m tests.mutation_score`.

A mutant is dead when a test failed, an import broke, or the tests did not end. Where not all were
tried, those tried are a random sample (`tests.mutation_run --share`), and the score comes with its
95 % interval (Wilson's, not narrowed for what little is left to try). Exit status 1 if fewer than
`GOAL` per cent of those tried are dead, in any package.
"""

import json
import math
import sys
from collections import Counter, defaultdict
from pathlib import Path

GOAL = 95.0
ALIVE, UNTESTED, NOT_TRIED = 0, (5, 33), None
DEVIATIONS = 1.96  # on either side of the mean, of 95 % of a normal distribution


def main(folder=Path("mutants")):
    totals = defaultdict(Counter)
    print(f"{'module':<24}{'mutants':>8}{'tried':>8}{'dead':>8}{'score':>8}  95 % interval")
    for path in sorted(folder.glob("*/**/*.py.meta")):
        codes = list(json.loads(path.read_text())["exit_code_by_key"].values())
        tried = [code for code in codes if code is not NOT_TRIED]
        dead = sum(code != ALIVE and code not in UNTESTED for code in tried)
        if codes:
            counts = Counter(mutants=len(codes), tried=len(tried), dead=dead)
            name = path.relative_to(folder).as_posix().removesuffix(".py.meta")
            totals[name.split("/")[0]] += counts
            _line(name, counts)
    for package, counts in totals.items():
        _line(package, counts)
    return 0 if totals and all(map(_is_enough, totals.values())) else 1


def _is_enough(counts):
    return 100 * counts["dead"] >= GOAL * counts["tried"] > 0


def _line(name, counts):
    mutants, tried, dead = counts["mutants"], counts["tried"], counts["dead"]
    score = f"{100 * dead / tried:.1f} %" if tried else "-"
    low, high = interval(dead, tried) if 0 < tried < mutants else ("", "")
    said = f"  {low:.1f} to {high:.1f}" if low != "" else ""
    print(f"{name:<24}{mutants:>8}{tried:>8}{dead:>8}{score:>8}{said}")


def interval(dead, tried):
    """Wilson's 95 % interval of the share of dead ones, in per cent."""
    share, squared = dead / tried, DEVIATIONS**2
    middle = share + squared / (2 * tried)
    half = DEVIATIONS * math.sqrt(share * (1 - share) / tried + squared / (4 * tried**2))
    scale = 100 / (1 + squared / tried)
    return scale * (middle - half), scale * (middle + half)


if __name__ == "__main__":
    sys.exit(main())
