"""The score of `make mutate`, module by module: `python -m tests.mutation_score`.

A mutant is dead when a test failed, an import broke, or the tests did not end. Exit status 1 if
fewer than `GOAL` per cent of those tried are dead.
"""

import json
import sys
from collections import Counter
from pathlib import Path

GOAL = 95.0
ALIVE, UNTESTED, NOT_TRIED = 0, (5, 33), None


def main(folder=Path("mutants")):
    total = Counter()
    print(f"{'module':<24}{'mutants':>8}{'tried':>8}{'dead':>8}{'score':>8}")
    for path in sorted(folder.rglob("*.py.meta")):
        codes = list(json.loads(path.read_text())["exit_code_by_key"].values())
        tried = [code for code in codes if code is not NOT_TRIED]
        dead = sum(code != ALIVE and code not in UNTESTED for code in tried)
        total += Counter(mutants=len(codes), tried=len(tried), dead=dead)
        if codes:
            name = path.relative_to(folder).as_posix().removesuffix(".py.meta")
            _line(name, len(codes), len(tried), dead)
    _line("all", total["mutants"], total["tried"], total["dead"])
    return 0 if 100 * total["dead"] >= GOAL * total["tried"] > 0 else 1


def _line(name, mutants, tried, dead):
    score = f"{100 * dead / tried:.1f} %" if tried else "-"
    print(f"{name:<24}{mutants:>8}{tried:>8}{dead:>8}{score:>8}")


if __name__ == "__main__":
    sys.exit(main())
