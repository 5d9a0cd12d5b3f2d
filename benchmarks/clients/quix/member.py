"""One process of the Quix benchmark: runs an application's file, and reports as JSON lines.

`python -m benchmarks.clients.quix.member ASSIGNOR [OPTION=NUMBER ...] FILE`

It reports each change of the partitions that the application runs, with the number of changelog
records that Quix has replayed and that standbys have applied so far, and of standbys that are not
restored.
"""

import json
import runpy
import sys
import threading
import time
from contextlib import contextmanager, nullcontext

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException
from quixstreams import Application
from quixstreams.state.recovery import RecoveryManager, RecoveryPartition

from assignor.integrations.quix import installed, streams_assignor
from assignor.integrations.quix.member import QuixMember

REPLAYED = [0]
OWNED = set()
MEMBERS = []
COMMIT_S = 30
REFUSED_WHILE_IT_REBALANCES = {KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS}


def report():
    facts = {
        "at": time.time(),
        "owned": sorted(OWNED),
        "replayed": REPLAYED[0],
        "followed": sum(member.standbys.applied for member in MEMBERS),
        "restoring": sum(map(restoring, MEMBERS)),
    }
    sys.stdout.write(json.dumps(facts) + "\n")  # one call: two threads report
    sys.stdout.flush()


def restoring(member):
    """Number of standbys that have not had all of their changelog yet."""
    follower = member.standbys
    copies = list(follower._open.values())  # noqa: SLF001
    return len(follower._wanted) - sum(copy.is_restored for copy in copies)  # noqa: SLF001


class CooperativeSticky(confluent_kafka.Consumer):
    """A plain consumer whose commits wait for the end of a rebalance; Quix would stop at them."""

    def commit(self, **arguments):
        end = time.monotonic() + COMMIT_S
        while True:
            try:
                return super().commit(**arguments)
            except KafkaException as error:
                code = error.args[0].code()
                if code not in REFUSED_WHILE_IT_REBALANCES or time.monotonic() > end:
                    raise
                time.sleep(0.05)


def cooperative_sticky(settings, _topology, _listener):
    return CooperativeSticky(settings | {"partition.assignment.strategy": "cooperative-sticky"})


@contextmanager
def with_assignor(name, options, application):
    """Run an application with an assignor; `range` is Quix itself."""
    chosen = {
        "range": nullcontext,
        "cooperative-sticky": lambda: installed(application, cooperative_sticky),
        "streams": lambda: streams_assignor(application, **options),
    }
    with chosen[name]():
        yield


def observe():
    """Count what Quix replays, and report what it runs."""
    replay = RecoveryPartition.recover_from_changelog_message

    def counted(self, changelog_message):
        # Standbys apply records by the same method, on a thread of their own.
        REPLAYED[0] += threading.current_thread() is threading.main_thread()
        return replay(self, changelog_message=changelog_message)

    RecoveryPartition.recover_from_changelog_message = counted
    made = QuixMember.__init__

    def remembered(self, *arguments):
        made(self, *arguments)
        MEMBERS.append(self)

    QuixMember.__init__ = remembered
    after(RecoveryManager, "do_recovery", lambda *_: None)
    after(Application, "_on_assign", lambda app, _, new: OWNED.update(inputs(app, new)))
    for name in ("_on_revoke", "_on_lost"):
        after(Application, name, lambda app, _, gone: OWNED.difference_update(inputs(app, gone)))


def inputs(application, partitions):
    topics = {topic.name for topic in application._dataframe_registry.consumer_topics}  # noqa: SLF001
    return {each.partition for each in partitions if each.topic in topics}


def after(kind, name, change):
    """Report after each call of a method."""
    method = getattr(kind, name)

    def observed(self, *arguments):
        result = method(self, *arguments)
        change(self, *arguments)
        report()
        return result

    setattr(kind, name, observed)


def main():
    name, *options, file = sys.argv[1:]
    chosen = {key: int(number) for key, number in (option.split("=") for option in options)}
    observe()
    run = Application.run

    def run_with_assignor(self, *arguments, **keywords):
        with with_assignor(name, chosen, self):
            return run(self, *arguments, **keywords)

    Application.run = run_with_assignor
    every_second = threading.Thread(target=report_at_intervals, daemon=True)
    every_second.start()
    runpy.run_path(file, run_name="__main__")
    OWNED.clear()
    report()


def report_at_intervals():
    while True:
        time.sleep(0.5)
        report()


if __name__ == "__main__":
    main()
