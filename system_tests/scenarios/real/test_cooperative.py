"""Cooperative native members beside JVM members (KIP-429): no task runs twice at a time."""

import pytest

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    "first",
    [
        "native",
        pytest.param(
            "jvm", marks=pytest.mark.nightly("20 s; every run has the native member first")
        ),
    ],
)
def test_tasks_move_between_cooperative_members_and_every_word_is_counted_once(
    word_count_on, kafka_3_9, first
):
    group = word_count_on(kafka_3_9)
    start = {
        "native": lambda name: group.start(name, "native", cooperative=True),
        "jvm": lambda name: group.start(name, "3.9.1"),
    }
    second = {"native": "jvm", "jvm": "native"}[first]
    start[first]("a")
    group.settle()
    for name, kind in (("b", second), ("c", first), ("d", second)):
        start[kind](name)
        group.settle()
    assert {len(member.active) for member in group.members.values()} == {2}
    group.stop("b")
    group.settle()
    written, counted = group.finish()
    assert counted == written
    assert group.failures() == {}
