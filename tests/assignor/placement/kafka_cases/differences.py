"""Differences of this project's strategies from Kafka's tests: case -> reason and sentences.

A listed case must differ in the listed sentences and in no others. The port is never listed.
"""

from dataclasses import dataclass

RACKED = ("min_traffic", "balance_subtopology")
ALL = ("none", *RACKED)
HIGH, STICKY = "HighAvailabilityTaskAssignorTest", "LegacyStickyTaskAssignorTest"
CUSTOM, RACK = "CustomStickyTaskAssignorTest", "RackAwareTaskAssignorTest"
MOVEMENT, CONVERGENCE = "TaskMovementTest", "TaskAssignorConvergenceTest"


def cases(kafka_class, test, parameters, *sentences):
    """Case name -> sentences that do not hold, for each of the parameters."""
    return {
        f"{kafka_class}.{test}" + (f"[{case}]" if case else ""): sentences for case in parameters
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why some cases differ on purpose.

    Attributes:
        kafka, native: what each does, for the page.
        price: its cost in this project, for the page.
        differing: case name -> sentences that do not hold. A name without a seed means all seeds of
            a random test, of which some differ.
    """

    kafka: str
    native: str
    differing: dict[str, tuple[str, ...]]
    price: str = "none"


LEVEL = "level subtopologies"
TRAFFIC = "shouldOptimizeStatefulAndStatelessTaskTraffic"
REASONS = (
    Reason(
        kafka="warms up a task on the next client of its round robin, although its owner has state",
        native="no warm-up for a task that runs on a client with its state and inside its band",
        differing=cases(
            *(HIGH, "shouldComputeNewAssignmentIfActiveTasksWasNotOnCaughtUpClient", ALL),
            "followup yes",
        )
        | cases(
            *(HIGH, "shouldAssignToMostCaughtUpIfActiveTasksWasNotOnCaughtUpClient", ALL),
            *("standby 1 = 0_0", "followup yes"),
        ),
    ),
    Reason(
        kafka="distributes all tasks again at every rebalance, so each subtopology is even",
        native="owners keep their tasks; only tasks that move are distributed evenly by "
        "subtopology",
        price="subtopologies may be uneven",
        differing=cases(
            CONVERGENCE, "assignmentShouldConvergeAfterAddingNode", ("none",), f"{LEVEL} 1"
        )
        | cases(CONVERGENCE, "droppingNodesShouldConverge", ("none",), f"{LEVEL} 1")
        | cases(
            *(CONVERGENCE, "randomClusterPerturbationsShouldConverge", ("none",)),
            *(f"{LEVEL} 1", "level stateful"),
        ),
    ),
    Reason(
        kafka="`balance_subtopology` moves running tasks until each subtopology is even",
        native="a client may keep all of its tasks of a subtopology, so owners keep their tasks",
        price="subtopologies may be uneven",
        differing=cases(
            *(STICKY, "shouldAssignTasksNotPreviouslyActiveToNewClient", RACKED[1:]),
            *("active 1 = 0_1 1_2 2_3", "active 3 = 0_2 1_3 2_1", "active 4 = 0_3 1_0 2_0"),
        )
        | cases(
            *(STICKY, "shouldAssignTasksNotPreviouslyActiveToMultipleNewClients", RACKED[1:]),
            *("active 1 = 0_1 1_2 2_3", "active 3 = 0_2 1_3 2_1", "active 4 = 0_3 1_0 2_0"),
        )
        | cases(
            *(RACK, "shouldOptimizeRandomActive", ("stateful,balance_subtopology",)), f"{LEVEL} 1"
        ),
    ),
    Reason(
        kafka="standbys are even over the stateful tasks; `HighAvailabilityTaskAssignor` uses "
        "racks of clients only for their costs",
        native="standbys are even over all tasks of a client, including stateless ones, and copies "
        "are separated by `client.rack` first",
        price="a client that is alone in its rack has more standbys",
        differing=cases(
            *(CONVERGENCE, "randomClusterPerturbationsShouldConverge", RACKED[1:]), "level stateful"
        ),
    ),
    Reason(
        kafka="at equal cost, tasks stay where the max flow places them, not with their owners",
        native="at equal cost, no task moves",
        differing=cases(
            *(RACK, "shouldBalanceAssignmentWithMoreCost", ("stateless,balance_subtopology",)),
            *("active 2 = 0_0-1", "active 5 = 1_1"),
        ),
    ),
    Reason(
        kafka="avoids that two clients have the same set of tasks",
        native="standbys stay where their state is, separated by racks; equal sets are not avoided",
        price="after a crash, one client may get all tasks of another",
        differing=cases(
            STICKY,
            "shouldNotHaveSameAssignmentOnAnyTwoHostsWhenThereArePreviousStandbyTasks",
            *(("none",), "different 1 2 3 4"),
        ),
    ),
    Reason(
        kafka="chooses one of several equally good placements",
        native="chooses another one: as few moves, and no more partitions read from another rack",
        differing=cases(
            *(STICKY, TRAFFIC, ("none",)),
            *("active 1 = 0_1-2 1_3", "standby 1 = 0_0", "active 2 = 0_3 1_0-1"),
            *("active 3 = 0_0 1_2", "standby 3 = 1_0-1"),
        )
        | cases(
            *(STICKY, TRAFFIC, ("min_traffic",)),
            *("active 1 = 0_3 1_0 1_2", "standby 1 = 0_0-1", "active 2 = 0_0 0_2 1_1"),
            *("standby 2 =", "active 3 = 0_1 1_3", "standby 3 = 1_0-1"),
        )
        | cases(
            *(STICKY, TRAFFIC, ("balance_subtopology",)),
            *("active 2 = 0_1-2 1_1", "active 3 = 1_0 1_3"),
        ),
    ),
    Reason(
        kafka="a new group keeps the round-robin distribution, because a change counts as a move",
        native="a task without an owner does not count as moved: only racks decide",
        differing=cases(
            *(STICKY, "shouldEvenlyDistributeByTaskIdAndPartition", RACKED),
            *(f"active {n + 1} = 0_{n} 0_{n + 4} 1_{n} 1_{n + 4}" for n in range(4)),
        ),
    ),
    Reason(
        kafka="a stateless task goes to the client that reported it as a standby",
        native="a stateless task has no standby, so no client is preferred",
        differing=cases(
            *(CUSTOM, "shouldAssignTasksToClientWithPreviousStandbyTasks", ALL),
            *("active 1 has 0_2", "active 3 has 0_0"),
        ),
    ),
    Reason(
        kafka="its sticky assignor can keep all owners, without a follow-up rebalance",
        native="`fallback_prior` keeps all owners and always asks for one (as Kafka's does)",
        price="one more rebalance",
        differing=cases(
            *(STICKY, "shouldViolateBalanceToPreserveActiveTaskStickiness", ALL), "followup no"
        ),
    ),
)


def _all_listed():
    tables = [reason.differing for reason in REASONS]
    listed: dict[str, tuple[str, ...]] = {}
    for table in tables:
        twice = sorted(listed.keys() & table.keys())
        if twice:
            raise ValueError(f"{twice[0]} is listed twice; give it one reason")
        listed |= table
    return listed


LISTED = _all_listed()


def known_failures(name):
    """Sentences that may fail for a case, or for all seeds of a random test."""
    return LISTED.get(name, ())


def counted(cases):
    """The sentence of the page: how many of Kafka's cases are used and how many differ."""
    whole = sum(name in cases for name in LISTED)
    return (
        f"{len(cases)} cases are taken over (a case is a test of Kafka with one rack strategy, and "
        f"with one seed where it is random). {whole} cases differ, and in "
        f"{len(LISTED) - whole} random tests some seeds do, for {len(REASONS)} reasons"
    )


def section():
    """Return the table of docs/measurements/kafka-assignor-tests.md."""
    lines = ["| Kafka | this project | price | tests of Kafka |", "| --- | --- | --- | --- |"]
    for reason in REASONS:
        tests = dict.fromkeys(name.partition("[")[0] for name in reason.differing)
        named = ", ".join(f"`{name}`" for name in tests)
        lines.append(f"| {reason.kafka} | {reason.native} | {reason.price} | {named} |")
    return "\n".join(lines)
