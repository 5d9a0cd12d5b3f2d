"""The schedule of a soak: one seed gives one sequence of disturbances, all of them possible."""

from itertools import islice

import pytest

from system_tests.soak.options import NATIVE, SoakOptions
from system_tests.soak.schedule import (
    EMBEDDED_PACK,
    REAL_PACK,
    Kind,
    draw_schedule,
    free_path,
)


def drawn(count=200, **options):
    return list(islice(draw_schedule(SoakOptions(**options)), count))


def test_the_same_seed_draws_the_same_schedule_and_another_seed_another_one():
    assert drawn(seed=7) == drawn(seed=7)
    assert drawn(seed=7) != drawn(seed=8)


def test_the_first_round_has_every_kind_as_often_as_configured():
    first = [disturbance.kind for disturbance in drawn(len(EMBEDDED_PACK))]
    never_replaced = [kind for kind in EMBEDDED_PACK if kind not in (Kind.GROW, Kind.SHRINK)]
    assert sorted(k for k in first if k not in (Kind.GROW, Kind.SHRINK)) == sorted(never_replaced)
    assert {Kind.RESTART, Kind.CRASH, Kind.FREEZE} <= {
        disturbance.kind for disturbance in drawn(len(REAL_PACK), broker="4.1.0")
    }
    assert not {disturbance.kind for disturbance in drawn(broker="4.1.0")} & {
        Kind.CUT,
        Kind.MOVE,
        Kind.NODE_DOWN,
    }


@pytest.mark.parametrize("client", ["kafka-python", "mixed"])
@pytest.mark.parametrize("members", [3, 4, 6])
def test_members_come_and_go_within_bounds_and_long_lived_ones_never(client, members):
    options = SoakOptions(members=members, client=client)
    up = set(options.names[:members])
    for disturbance in drawn(members=members, client=client):
        if disturbance.kind is Kind.GROW:
            assert disturbance.victim not in up
            up.add(disturbance.victim)
        elif disturbance.victim is not None:
            assert disturbance.victim in up
        if disturbance.kind is Kind.SHRINK:
            up.remove(disturbance.victim)
        assert disturbance.victim not in options.long_lived
        assert set(options.long_lived) < up
        assert 2 <= len(up) <= members + 2


def test_bounces_go_only_where_one_bounce_without_a_pin_leads():
    current = NATIVE
    releases = [
        disturbance.release for disturbance in drawn(400) if disturbance.kind is Kind.BOUNCE
    ]
    for release in releases:
        assert free_path(current, release)
        assert release == NATIVE or (free_path(NATIVE, release) and free_path(release, NATIVE))
        current = release
    assert {NATIVE, "next", "incompatible"} < set(releases)


def test_the_calm_after_a_disturbance_is_what_was_asked_for_to_twice_that():
    assert all(3.0 <= disturbance.calm_s <= 6.0 for disturbance in drawn(calm_s=3.0))


def test_kills_are_put_between_other_disturbances_when_the_last_one_is_too_long_ago():
    now_s, last_s, ages, kinds = 0.0, 0.0, [], []
    schedule = draw_schedule(SoakOptions(kill_every_s=60), now_s=lambda: now_s)
    for disturbance in islice(schedule, 200):
        if disturbance.kind in (Kind.KILL, Kind.KILL_LEADER):
            ages.append(now_s - last_s)
            kinds.append(disturbance.kind)
            last_s = now_s + 20
        now_s += 20
    assert max(ages) <= 60
    assert len(ages) > 40
    assert 0.3 < kinds.count(Kind.KILL) / len(kinds) < 0.7


def test_with_two_clients_one_member_on_each_is_long_lived():
    assert SoakOptions(client="mixed").long_lived == ("a", "b")
    assert SoakOptions(client="aiokafka").long_lived == ("a",)


def test_the_broker_keeps_more_records_than_a_group_may_be_behind():
    options = SoakOptions(rate=200.0, partitions=6)
    least_s = options.retention_bytes * options.partitions / (options.rate * 100)
    assert least_s > 2 * options.settle_timeout_s
