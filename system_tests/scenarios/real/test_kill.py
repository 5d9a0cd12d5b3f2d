"""Faults with JVM members: leaders killed during probing, members paused, brokers restarted.

Nothing may be lost: every word that was written is counted. A crash may count one twice, as at
least once allows.
"""

import pytest

from system_tests.live.events import RejoinRequested, StateChanged
from system_tests.real import RealBroker, broker_release

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

_SESSION_MS = 10_000


def assert_nothing_lost(group):
    written, counted = group.finish()
    assert sum(written.values()) > 0
    assert {
        word: (count, counted[word]) for word, count in written.items() if counted[word] < count
    } == {}


def test_a_jvm_leader_killed_while_a_member_probes(word_count_on, kafka_3_9):
    group = word_count_on(kafka_3_9, session_timeout_ms=_SESSION_MS)
    leader = group.start("jvm", "3.9.1")
    group.settle()
    native = group.start("native", "native", start_version="latest")
    native.wait_for("the way down", lambda: native.all(RejoinRequested))
    del group.members["jvm"]
    leader.kill()
    group.settle()
    assert len(native.active) == 8
    assert_nothing_lost(group)


@pytest.mark.nightly("40 s; every run kills a JVM leader")
def test_a_native_leader_is_killed_while_a_jvm_member_is_bounced(word_count_on, kafka_3_9):
    group = word_count_on(kafka_3_9, session_timeout_ms=_SESSION_MS)
    for name, release in (("native", "native"), ("jvm0", "2.8.2"), ("jvm1", "2.8.2")):
        group.start(name, release)
        group.settle()
    group.stop("jvm0")
    newer = group.start("jvm0", "3.9.1")
    newer.wait_for("its first rebalance", lambda: newer.all(StateChanged))
    group.members["native"].kill()
    again = group.start("native", "native")
    group.settle()
    assert again.is_running
    assert group.failures() == {}
    assert_nothing_lost(group)


@pytest.mark.nightly("25 s; every run freezes the native member", but=("native",))
@pytest.mark.parametrize("frozen", ["native", "jvm"])
def test_a_member_frozen_for_longer_than_its_session_comes_back(word_count_on, kafka_3_9, frozen):
    group = word_count_on(kafka_3_9, session_timeout_ms=_SESSION_MS)
    for name, release in (("native", "native"), ("jvm", "3.9.1")):
        group.start(name, release)
        group.settle()
    sleeper = group.members[frozen]
    awake = group.members["jvm" if frozen == "native" else "native"]
    sleeper.pause()
    try:
        group.wait("the others' takeover", lambda: len(awake.active) == 8)
    finally:
        sleeper.resume()
    group.wait("the return", lambda: len(awake.active) == 4)
    group.settle()
    assert len(sleeper.active) == 4
    assert group.failures() == {}
    assert_nothing_lost(group)


@pytest.mark.nightly("a broker, 18 s of processor time; every run kills one", but=("kill",))
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_broker_restarted_in_the_middle_of_an_upgrade(word_count_on, how):
    broker = RealBroker(broker_release("kafka:3.9"))
    broker.start()
    try:
        group = word_count_on(broker, session_timeout_ms=15_000)
        for name, release in (("native", "native"), ("jvm0", "3.1.2"), ("jvm1", "3.1.2")):
            group.start(name, release)
            group.settle()
        group.stop("jvm0")
        group.start("jvm0", "3.9.1")
        (broker.stop if how == "stop" else broker.kill)()
        broker.start()
        group.settle()
        group.stop("jvm1")
        group.start("jvm1", "3.9.1")
        described = group.settle()
        assert {v for name, v in described.used_versions.items() if name != "native"} == {11}
        assert group.failures() == {}
        assert_nothing_lost(group)
    finally:
        broker.close()
