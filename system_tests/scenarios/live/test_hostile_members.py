"""Two correct members on a broker, and one that sends random and malformed user data."""

import time

import pytest
from kafka import KafkaProducer

from assignor.observe import AnswersDecided
from system_tests.broker import BrokerConfig, running_broker
from system_tests.support.hostile_members import (
    PARTITIONS,
    TOPIC,
    HonestMember,
    HostileMember,
    hostile_blobs,
)
from tests.nightly import sample

BLOBS = 200
HEARTBEATS = 30
# A join, a follow-up for what was withheld, and the rounds for which a claim is believed.
MAX_REBALANCES = 8

pytestmark = [
    pytest.mark.usefixtures("clock"),
    pytest.mark.slow,
    pytest.mark.timeout(900),
]


@pytest.fixture
def broker():
    with running_broker(BrokerConfig(topics={TOPIC: PARTITIONS})) as running:
        yield running


def wait(found, what, *, limit_s=180.0):
    deadline = time.monotonic() + limit_s
    while not found():
        assert time.monotonic() < deadline, f"not in {limit_s:.0f} s: {what()}"
        time.sleep(0.02)


def decisions(members):
    return [
        observation
        for m in members
        for observation in tuple(m.observations)
        if isinstance(observation, AnswersDecided)
    ]


def among_honest(members):
    """How many decisions were about the honest members alone."""
    return sum(made.members == len(members) for made in decisions(members))


def heartbeats(broker, since_ms):
    return [request for request in broker.requests("Heartbeat") if request.at_ms > since_ms]


def tasks(members):
    return sorted(str(task) for member in members for task in member.assignor.tasks.active)


def settled(members):
    def found():
        if tasks(members) == [f"0_{p}" for p in range(PARTITIONS)]:
            return not any(member.assignor._driver.port.is_rebalancing() for member in members)
        return False

    return found


@pytest.mark.nightly(
    "13 s each; every run has both protocols, and both kinds of member",
    but=("cooperative-claims-all", "eager-silent"),
)
@pytest.mark.parametrize("claims_all", [False, True], ids=["silent", "claims-all"])
@pytest.mark.parametrize("protocol", ["cooperative", "eager"])
def test_hostile_bytes_cost_the_honest_members_nothing(broker, protocol, claims_all):
    servers = broker.bootstrap_servers
    honest = [HonestMember(servers, 0, protocol)]
    wait(settled(honest), lambda: (tasks(honest), honest[0].ended))
    honest.append(HonestMember(servers, 1, protocol))
    wait(settled(honest), lambda: tasks(honest))
    hostile = HostileMember(servers, claims_all=claims_all)
    producer = KafkaProducer(bootstrap_servers=servers, acks="all", metrics_enabled=False)
    sent, unnamed = 0, []
    try:
        for number, blob in enumerate(
            sample(
                list(hostile_blobs(BLOBS)),
                every=10,
                reason="200 blobs take a minute a group",
            )
        ):
            for partition in range(PARTITIONS):
                producer.send(TOPIC, value=b"%d" % number, partition=partition)
            sent += 1
            answers, before = hostile.answers, len(decisions(honest))
            hostile.write(blob)
            wait(lambda n=answers: hostile.answers > n, lambda n=number: (n, honest[0].errors))
            made = decisions(honest)[before:]
            unnamed += [
                (number, member.warnings)
                for member in made
                if member.quarantined_members and not any("hostile" in w for w in member.warnings)
            ]
        producer.flush()
        alone = among_honest(honest)
        hostile.close()
        # That it is gone is noticed with a heartbeat, so the group is settled for a moment before.
        wait(lambda: among_honest(honest) > alone, lambda: decisions(honest)[-1])
        wait(settled(honest), lambda: tasks(honest))
        wait(
            lambda: all(
                max(m.offsets.get(p, 0) for m in honest) == sent for p in range(PARTITIONS)
            ),
            lambda: [m.offsets for m in honest],
        )
        before, since_ms = len(decisions(honest)), broker.requests()[-1].at_ms
        wait(lambda: len(heartbeats(broker, since_ms)) >= HEARTBEATS, lambda: "heartbeats")
        assert len(decisions(honest)) == before, "no rebalance without a reason"
    finally:
        hostile.close()
        producer.close()
        for member in honest:
            member.close()
    assert unnamed == []
    assert before <= MAX_REBALANCES * (sent + len(honest))
    assert [member.ended for member in honest] == [None, None]
    assert [why for member in honest for why in member.errors if "defect" in why] == []
