"""Every sequence of events up to a depth, against every loop, and what did not hold.

    python -m tests.assignor.adapters.contract.explore --depth 3 --every 10

Exit status 1: a rule did not hold; its first sequences are printed.
"""

import itertools
import logging
import os
import random
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import click

from tests.assignor.adapters.contract.events import EVENTS
from tests.assignor.adapters.contract.facade import LOOPS

_PARTS = 100
_SHOWN = 3


@dataclass
class Explored:
    """What the sequences of a loop have shown.

    Attributes:
        findings: rule that did not hold -> [(sequence, sentence)].
    """

    sequences: int = 0
    cpu_s: float = 0.0
    virtual_s: float = 0.0
    raised: Counter = field(default_factory=Counter)
    findings: dict = field(default_factory=dict)

    def add(self, other):
        """Add what other sequences have shown."""
        self.sequences += other.sequences
        self.cpu_s += other.cpu_s
        self.virtual_s += other.virtual_s
        self.raised.update(other.raised)
        for rule, found in other.findings.items():
            self.findings.setdefault(rule, []).extend(found)


def sequences(depth, every=1, first=0, events=EVENTS):
    """Return all sequences of so many events, or each N-th."""
    return itertools.islice(itertools.product(events, repeat=depth), first, None, every)


def explore(loop, names, seed=0):
    """Run sequences against a loop, with random delays by this seed."""
    found, since_s = Explored(), time.process_time()
    for sequence in names:
        run = play(loop, sequence, seed=seed)
        found.sequences += 1
        found.virtual_s += run.clock.monotonic()
        found.raised.update(type(error).__name__ for _, error in run.raised)
        for sentence in run.broken[:1]:
            rule = sentence.partition(":")[0]
            found.findings.setdefault(rule, []).append((sequence, sentence))
    found.cpu_s = time.process_time() - since_s
    return found


def play(loop, sequence, reset="earliest", seed=0):
    """Run a sequence against a loop with `auto_offset_reset`; return the run.

    Args:
        loop: name.
        sequence: names of events.
        reset: `auto_offset_reset` of the consumer.
        seed: of the random delays.
    """
    run = LOOPS[loop]([EVENTS[name] for name in sequence], reset)
    kept, logging.lastResort = logging.lastResort, None
    drawn = random.getstate()
    random.seed(seed)  # kafka-python draws how long it waits before it asks again
    try:
        run.play()
    except Exception as error:  # noqa: BLE001 neither the loop nor the member may raise it
        run.broken.insert(0, f"raised: {type(error).__name__}: {error}")
    finally:
        logging.lastResort = kept
        random.setstate(drawn)
    return run


def _part(depth, every, loop, seed, part):
    return explore(loop, sequences(depth, every=every * _PARTS, first=every * part), seed)


@click.command(help=__doc__)
@click.option("--depth", default=2, show_default=True, help="Events in each sequence.")
@click.option("--every", default=1, show_default=True, help="Each N-th sequence only.")
@click.option("--seed", default=0, show_default=True, help="Of the random delays of clients.")
@click.option("--workers", default=os.cpu_count() or 1, help="Processes.")
@click.argument("loops", nargs=-1, type=click.Choice(list(LOOPS)))
def main(*, depth, every, seed, workers, loops):
    """Explore, print a table of the loops, and what was found."""
    click.echo(f"{'loop':33}{'sequences':>10}{'CPU s':>8}{'virtual min':>13}{'findings':>10}")
    is_broken = False
    with ProcessPoolExecutor(workers) as pool:
        for loop in loops or LOOPS:
            found = Explored()
            for part in pool.map(partial(_part, depth, every, loop, seed), range(_PARTS)):
                found.add(part)
            count = sum(map(len, found.findings.values()))
            minutes = found.virtual_s / 60
            click.echo(f"{loop:33}{found.sequences:10}{found.cpu_s:8.0f}{minutes:13.0f}{count:10}")
            for rule, each in found.findings.items():
                is_broken = True
                for sequence, sentence in each[:_SHOWN]:
                    click.echo(f"  {rule} ({len(each)}): {' '.join(sequence)}: {sentence}")
    sys.exit(is_broken)


if __name__ == "__main__":
    main()
