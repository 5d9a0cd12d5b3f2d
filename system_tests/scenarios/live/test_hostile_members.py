"""Two honest members on a broker, and one that writes hostile bytes, blob after blob."""

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

BLOBS = 200
QUIET_S = 3.0
# A join, a follow-up for what was withheld, and the rounds for which a claim is believed.
MOST_REBALANCES = 8

pytestmark = [
    pytest.mark.loop,
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
    return [one for m in members for one in tuple(m.seen) if isinstance(one, AnswersDecided)]


def tasks(members):
    return sorted(str(task) for one in members for task in one.assignor.tasks.active)


def settled(members):
    def found():
        if tasks(members) == [f"0_{p}" for p in range(PARTITIONS)]:
            return not any(one.assignor._client.is_rebalancing() for one in members)
        return False

    return found


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
    sent, worst, unnamed = 0, 0, []
    try:
        for number, blob in enumerate(hostile_blobs(BLOBS)):
            for partition in range(PARTITIONS):
                producer.send(TOPIC, value=b"%d" % number, partition=partition)
            sent += 1
            answers, before = hostile.answers, len(decisions(honest))
            hostile.write(blob)
            wait(lambda n=answers: hostile.answers > n, lambda n=number: (n, honest[0].errors))
            made = decisions(honest)[before:]
            worst = max(worst, len(made))
            unnamed += [
                (number, one.warnings)
                for one in made
                if one.quarantined_members and not any("hostile" in w for w in one.warnings)
            ]
        producer.flush()
        hostile.close()
        wait(settled(honest), lambda: tasks(honest))
        wait(
            lambda: all(
                max(m.offsets.get(p, 0) for m in honest) == sent for p in range(PARTITIONS)
            ),
            lambda: [m.offsets for m in honest],
        )
        before = len(decisions(honest))
        time.sleep(QUIET_S)
        assert len(decisions(honest)) == before, "no rebalance without a reason"
    finally:
        hostile.close()
        producer.close()
        for one in honest:
            one.close()
    assert unnamed == []
    assert worst <= MOST_REBALANCES
    assert [one.ended for one in honest] == [None, None]
    assert [why for one in honest for why in one.errors if "defect" in why] == []
