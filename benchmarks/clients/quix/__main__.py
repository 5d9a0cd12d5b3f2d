"""A stateful Quix Streams application under three assignors: moves, replays and counts.

`python -m benchmarks.clients.quix [--broker embedded|RELEASE] [--words 36000] [--partitions 12]`

Two processes run `examples/quix_counts.py` unchanged and count so many words; then words flow. A
third process starts; the first is killed (SIGKILL); it starts again with its state. `range` is Quix
with its own consumer. Quix cannot run under `cooperative-sticky` itself; here it does with the
consumer of `assignor.integrations.quix` around a plain one, and commits are retried.
"""

import argparse
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from benchmarks import rows as figures
from benchmarks.clients.quix.group import Group, RunFailedError
from system_tests.broker import BrokerConfig, running_broker

BROKE_OFF = 3
ASSIGNORS = {
    "range": ("range", {}),
    "cooperative-sticky": ("cooperative-sticky", {}),
    "streams": ("streams", {}),
    "streams, standbys": (
        "streams",
        {
            "num_standby_replicas": 1,
            "acceptable_recovery_lag": 500,
            "max_warmup_replicas": 12,
            "probing_rebalance_interval_ms": 60_000,
        },
    ),
}
STEPS = ("a third process", "kill -9 of the first", "the first again")


@contextmanager
def broker_of(name):
    """The address of a fresh broker: embedded, or of a release of Kafka."""
    if name == "embedded":
        with running_broker(BrokerConfig()) as broker:
            yield broker.bootstrap_servers[0]
        return
    from system_tests.real import running_real_broker  # noqa: PLC0415 only a real broker needs Java

    with running_real_broker(name) as broker:
        yield broker.bootstrap_servers


def run(group, words):
    """Rows of (step, moves, replayed, followed, longest wait), and whether counts are exact."""
    rows = []
    changes = (
        lambda: group.start("three"),
        lambda: group.kill("one"),
        lambda: group.start("one"),
    )
    try:
        group.write(words)
        group.start("one")
        group.start("two")
        group.settled()
        group.counted()
        group.write_on()
        for step, change in zip(STEPS, changes, strict=True):
            before = (group.moves(), group.sum("replayed"), group.sum("followed"))
            group.outcome.waits.clear()
            change()
            group.settled()
            after = (group.moves(), group.sum("replayed"), group.sum("followed"))
            counted = [new - old for new, old in zip(after, before, strict=True)]
            rows.append((step, *counted, max(group.outcome.waits) / 1000))
        group.end_writing()
        exact = group.counted()
        for process in list(group.processes.values()):
            process.stop()
        return rows, exact and group.counted()
    finally:
        group.close()


def table(results):
    print(f"{'assignor':<20} {'step':<22} {'moved':>5} {'replayed':>8} {'followed':>8} {'wait':>7}")
    for name, (rows, exact) in results.items():
        for step, moves, replayed, followed, wait_s in rows:
            print(
                f"{name:<20} {step:<22} {moves:>5} {replayed:>8,} {followed:>8,} {wait_s:>5.1f} s"
            )
        print(f"{name:<20} {'counts exact' if exact else 'COUNTS WRONG'}")


def judged(results):
    """Whether this assignor keeps what it promises, as rows beside their goals."""
    totals = {
        name: [sum(row[column] for row in rows) for column in (1, 2)]
        for name, (rows, _) in results.items()
    }
    wrong = [name for name, (_, exact) in results.items() if not exact]
    figures.say("quix", "counts are exact", ", ".join(wrong) or "all", "all", met=not wrong)
    met = [not wrong]
    for other in (name for name in ("range", "cooperative-sticky") if name in totals):
        for own in (name for name in totals if name.startswith("streams")):
            name = f"partitions moved, {own}, beside {other}"
            met.append(figures.at_most("quix", name, totals[own][0], totals[other][0]).met)
        if "streams, standbys" in totals:
            name = f"records replayed, standbys, a quarter of {other}"
            own = totals["streams, standbys"][1]
            met.append(figures.at_most("quix", name, own, totals[other][1] // 4).met)
    return all(met)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", default="embedded", help="embedded, or a release of Kafka")
    parser.add_argument("--words", type=int, default=36_000)
    parser.add_argument("--partitions", type=int, default=12)
    parser.add_argument("--only", action="append", choices=ASSIGNORS)
    parser.add_argument("--keep", type=Path, help="folder for state and logs")
    options = parser.parse_args()
    results = {}
    for name, (assignor, settings) in ASSIGNORS.items():
        if options.only and name not in options.only:
            continue
        with tempfile.TemporaryDirectory() as temporary, broker_of(options.broker) as servers:
            home = (options.keep or Path(temporary)) / name.replace(" ", "-")
            home.mkdir(parents=True)
            try:
                group = Group(servers, home, assignor, settings, options.partitions)
                results[name] = run(group, options.words)
            except RunFailedError as error:
                print(error, file=sys.stderr)
                return BROKE_OFF
    table(results)
    return int(not judged(results))


if __name__ == "__main__":
    sys.exit(main())
