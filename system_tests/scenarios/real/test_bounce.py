"""Rolling bounces of real JVM members and a native member, which leads or follows."""

import pytest

from probing import NEWEST_KAFKA
from system_tests.live.events import RejoinRequested

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]


def bounce(group, names, release, **config):
    """Restart members one after the other, and wait each time until the group has settled."""
    for name in names:
        group.stop(name)
        group.start(name, release, **config)
        described = group.settle()
    return described


def start_all(group, order, release):
    """Start members in this order, all but "native" on this release; the first one leads."""
    for name in order:
        group.start(name, "native" if name == "native" else release)
        described = group.settle()
    return described


def ours_rejoined_for_the_version(group):
    return [
        (event.used_version_before, event.used_version_after)
        for member in group.started
        for event in member.all(RejoinRequested)
        if event.for_version
    ]


@pytest.mark.kip("268-13", "real")
def test_from_1_1_two_bounces_with_the_pin_bring_real_members_to_2_3(word_count_on, kafka_3_9):
    group = word_count_on(kafka_3_9)
    start_all(group, ("jvm0", "jvm1"), "1.1.1")
    assert set(group.describe().used_versions.values()) == {2}
    pinned = bounce(group, ("jvm0", "jvm1"), "2.3.1", upgrade_from="1.1")
    assert set(pinned.used_versions.values()) == {2}
    half = bounce(group, ("jvm0",), "2.3.1")
    # A member still writes version 2, so all answers are in version 2.
    assert set(half.answered_versions.values()) == {2}
    done = bounce(group, ("jvm1",), "2.3.1")
    assert set(done.used_versions.values()) == {4}
    assert set(done.answered_versions.values()) == {4}
    assert group.failures() == {}
    written, counted = group.finish()
    assert all(counted[word] >= count for word, count in written.items())


@pytest.mark.kip("268-13", "real")
def test_a_native_leader_answers_in_version_2_until_the_last_pin_is_gone(word_count_on, kafka_3_9):
    group = word_count_on(kafka_3_9)
    group.start("native", "native", upgrade_from="1.1")
    group.settle()
    for name in ("jvm0", "jvm1"):
        group.start(name, "1.1.1")
        group.settle()
    pinned = bounce(group, ("jvm0", "jvm1"), "2.3.1", upgrade_from="1.1")
    assert set(pinned.used_versions.values()) == {2}
    half = bounce(group, ("jvm0",), "2.3.1")
    assert half.used_versions["jvm0"] == 4
    assert {half.answered_versions[name] for name in ("jvm0", "jvm1")} == {2}
    done = bounce(group, ("jvm1",), "2.3.1")  # native leads, and is pinned still
    assert {done.answered_versions[name] for name in ("jvm0", "jvm1")} == {4}
    last = bounce(group, ("native",), "native")
    assert {last.answered_versions[name] for name in ("jvm0", "jvm1")} == {4}
    assert group.failures() == {}
    written, counted = group.finish()
    assert all(counted[word] >= count for word, count in written.items())


@pytest.mark.kip("268-10", "real")
@pytest.mark.nightly("a minute; every run has a JVM leader", but=("jvm leads",))
@pytest.mark.parametrize(
    "order",
    [("native", "jvm0", "jvm1"), ("jvm0", "native", "jvm1")],
    ids=["native leads", "jvm leads"],
)
def test_one_bounce_from_3_1_to_the_newest(word_count_on, kafka_4, order):
    group = word_count_on(kafka_4)
    before = start_all(group, order, "3.1.2")
    assert before.used_versions["jvm0"] == 10
    after = bounce(group, ("jvm0", "jvm1"), NEWEST_KAFKA)
    assert {after.used_versions[name] for name in ("jvm0", "jvm1")} == {11}
    assert after.answered_versions["jvm0"] == after.answered_versions["jvm1"] == 11
    written, counted = group.finish()
    assert counted == written
    assert group.failures() == {}


@pytest.mark.parametrize(
    "order",
    [
        ("native", "jvm0", "jvm1"),
        pytest.param(
            ("jvm0", "native", "jvm1"),
            marks=pytest.mark.nightly("a minute; every run has a native leader"),
        ),
    ],
)
def test_from_2_3_eager_to_3_9_in_two_bounces(word_count_on, kafka_3_9, order):
    group = word_count_on(kafka_3_9)
    before = start_all(group, order, "2.3.1")
    assert before.used_versions["jvm0"] == 4
    bounce(group, ("jvm0", "jvm1"), "3.9.1", upgrade_from="2.3")
    after = bounce(group, ("jvm0", "jvm1"), "3.9.1")
    assert {after.used_versions[name] for name in ("jvm0", "jvm1")} == {11}
    assert group.failures() == {}
    written, counted = group.finish()
    assert all(counted[word] >= count for word, count in written.items())


def test_a_bounce_of_native_members_beside_a_jvm_leader_costs_no_rebalance_for_the_version(
    word_count_on, kafka_3_9
):
    group = word_count_on(kafka_3_9)
    start_all(group, ("jvm0", "native"), "3.9.1")
    group.start("native1", "native")
    group.settle()
    bounce(group, ("native", "native1"), "native")
    assert ours_rejoined_for_the_version(group) == []
    written, counted = group.finish()
    assert counted == written, "".join(f"\n{m.name}{m.tail()}" for m in group.started)
    assert group.failures() == {}


@pytest.mark.kip("268-20", "real")
def test_on_a_real_broker_a_clean_stop_pauses_a_partition_for_a_rebalance_only(bounce, kafka_3_9):
    run = bounce(f"--from 2.8 --to native --bootstrap-server {kafka_3_9.bootstrap_servers}")
    assert (run.status, run.failed()) == (0, [])
    longest = run.numbers("pauses")["longest"]
    assert longest["terms_ms"]["session_ms"] == 0
    assert longest["pause_ms"] <= longest["bound_ms"]


@pytest.mark.kip("268-20", "real")
def test_on_a_real_broker_a_crash_pauses_a_partition_for_a_session_and_a_rebalance(
    bounce, kafka_3_9
):
    options = f"--kill b --bootstrap-server {kafka_3_9.bootstrap_servers}"
    options += " --session-timeout-ms 12000"
    run = bounce(f"--from native --to next {options}")
    assert run.report["failure"] is None
    (check,) = [check for check in run.report["checks"] if check["name"] == "pauses"]
    assert check["ok"], check["sentence"]
    longest = check["numbers"]["longest"]
    assert longest["terms_ms"]["session_ms"] > 0
    assert 6_000 < longest["pause_ms"] <= longest["bound_ms"]
