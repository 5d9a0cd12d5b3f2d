"""Every sequence of events up to a depth, against every loop, and what did not hold."""

import itertools
import logging
import time
from collections import Counter
from dataclasses import dataclass, field

from tests.assignor.adapters.contract.events import EVENTS
from tests.assignor.adapters.contract.facade import LOOPS


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


def sequences(depth, every=1, first=0):
    """Return all sequences of so many events, or each N-th."""
    return itertools.islice(itertools.product(EVENTS, repeat=depth), first, None, every)


def explore(loop, names):
    """Run sequences against a loop."""
    found, since_s = Explored(), time.process_time()
    for sequence in names:
        run = play(loop, sequence)
        found.sequences += 1
        found.virtual_s += run.clock.monotonic()
        found.raised.update(type(error).__name__ for _, error in run.raised)
        for sentence in run.broken[:1]:
            rule = sentence.partition(":")[0]
            found.findings.setdefault(rule, []).append((sequence, sentence))
    found.cpu_s = time.process_time() - since_s
    return found


def play(loop, sequence, reset="earliest"):
    """Run a sequence against a loop with `auto_offset_reset`; return the run."""
    run = LOOPS[loop]([EVENTS[name] for name in sequence], reset)
    kept, logging.lastResort = logging.lastResort, None
    try:
        run.play()
    except Exception as error:  # noqa: BLE001 neither the loop nor the member may raise it
        run.broken.insert(0, f"raised: {type(error).__name__}: {error}")
    finally:
        logging.lastResort = kept
    return run
