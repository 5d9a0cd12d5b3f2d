import pytest

from probing import (
    NEWEST_KAFKA,
    PATH_RULES,
    RELEASES,
    Bounce,
    BounceReason,
    Direction,
    find_release,
    upgrade_path,
)
from tests.probing.rebootstrap import well_formed

METADATA, PROTOCOL = BounceReason.METADATA, BounceReason.PROTOCOL


def path(old, new):
    return upgrade_path(find_release(old), find_release(new))


def bounces(old, new):
    return [(b.release, b.upgrade_from, b.reasons) for b in path(old, new).bounces]


@pytest.mark.parametrize(
    ("old", "new", "value", "reasons"),
    [
        ("0.10.0", "0.10.2.2", "0.10.0", (METADATA,)),
        ("0.10.0", "1.1.1", "0.10.0", (METADATA,)),
        ("0.10.0", "2.3.1", "0.10.0", (METADATA,)),
        ("0.10.2.1", "2.0.1", "0.10.2", (METADATA,)),
        ("1.1.0", "3.9.2", "1.1", (METADATA, PROTOCOL)),
        ("2.0.1", "2.4.1", "2.0", (PROTOCOL,)),
        ("2.3.1", "3.9.2", "2.3", (PROTOCOL,)),
        ("0.11.0.2", "native", "0.11.0", (METADATA,)),
    ],
)
def test_two_bounces_the_first_with_the_old_series(old, new, value, reasons):
    assert bounces(old, new) == [(new, value, reasons), (new, None, reasons)]
    sentence = path(old, new).reasons[0]
    assert f"set upgrade.from={value} on {new} " in sentence


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("2.0.1", "2.3.1", BounceReason.PROBING),
        ("2.4.1", "4.3.1", BounceReason.PROBING),
        ("3.1.2", "native", BounceReason.PROBING),
        ("2.0.1", "native", BounceReason.PROBING),
        ("3.9.2", "4.0.0", BounceReason.PROGRAM),
        ("0.10.1.1", "1.1.0", BounceReason.PROGRAM),
        ("2.6.0", "2.6.1", BounceReason.PROBING),
        ("4.3.1", "2.4.0", BounceReason.PROBING),
        ("native", NEWEST_KAFKA, BounceReason.PROGRAM),
        ("native", "2.0.1", BounceReason.PROBING),
    ],
)
def test_one_bounce_without_any_setting(old, new, reason):
    assert bounces(old, new) == [(new, None, (reason,))]


@pytest.mark.parametrize("new", ["4.0.0", "4.1.2", "4.2.2", "4.3.1", "4.4.0"])
@pytest.mark.parametrize("old", ["0.10.0.0", "1.1.1", "2.0.0", "2.3.1"])
def test_up_to_2_3_there_is_no_way_to_4_0_but_by_a_bridge(old, new):
    closed = path(old, new)
    assert (closed.possible, closed.bounces) == (False, ())
    assert closed.bridges == ("3.5", "3.6", "3.7", "3.8", "3.9")
    assert "KAFKA-18839" in closed.reasons[0]
    for bridge in closed.bridges:
        assert path(old, bridge).possible
        assert path(bridge, new).possible
    assert path(new, old).bridges == closed.bridges


@pytest.mark.parametrize("new", ["0.10.1.1", "0.10.2.1", "0.11.0.2", "1.0.1", "1.1.0"])
def test_without_the_backport_0_10_0_has_to_be_stopped_or_take_a_detour(new):
    closed = path("0.10.0.1", new)
    assert not closed.possible
    assert "KAFKA-6054" in closed.reasons[0]
    assert "stop all members" in closed.reasons[0]
    for bridge in closed.bridges:
        assert path("0.10.0.1", bridge).possible
        assert path(bridge, new).possible
    assert bool(closed.bridges) is (new not in ("0.10.1.1", "0.10.2.1"))


@pytest.mark.parametrize("new", ["2.1.0", "2.1.1", "2.2.0", "2.2.1", "2.3.0"])
def test_kafka_8649_closes_the_way_in_both_directions_and_names_the_releases_around_it(new):
    for closed in (path("2.0.1", new), path(new, "2.0.0")):
        assert (closed.possible, closed.bounces) == (False, ())
        assert "KAFKA-8649" in closed.reasons[0]
        assert closed.bridges == ("2.2.2", "2.3.1", "2.4")
    for bridge in ("2.2.2", "2.3.1", "2.4"):
        assert path("2.0.1", bridge).possible


def test_to_the_same_release_there_is_nothing_to_bounce():
    for release in RELEASES:
        same = upgrade_path(release, release)
        assert (same.possible, same.bounces, same.direction) == (True, (), Direction.NONE)


def test_a_rollback_pins_the_program_that_is_left_before_it_is_left():
    assert bounces("3.9.2", "1.1.1") == [
        ("3.9.2", "1.1", (METADATA, PROTOCOL)),
        ("1.1.1", None, (METADATA, PROTOCOL)),
    ]
    assert path("3.9.2", "1.1.1").direction is Direction.ROLLBACK
    sentence = path("3.9.2", "1.1.1").reasons[0]
    assert "start the members as 1.1.1 in the second one" in sentence


def test_stages_are_the_bounces_of_a_path_or_one_without_a_pin():
    pinned = path("1.1.1", "3.9.2")
    bounces = (Bounce(release="3.9.2", upgrade_from=None, reasons=()),)
    assert pinned.stages() == pinned.stages(in_one=False) == pinned.bounces
    assert pinned.stages(in_one=True) == bounces
    assert path("3.9.2", "3.9.2").stages() == bounces
    broken = path("2.0.1", "2.3.0")
    assert not broken.possible
    assert [stage.release for stage in broken.stages()] == ["2.3.0"]


def test_every_pair_has_a_row_and_a_sentence_and_impossible_paths_name_what_to_do():
    hit = set()
    for old in RELEASES:
        for new in RELEASES:
            found = upgrade_path(old, new)
            hit.add(found.rule)
            (sentence,) = found.reasons
            assert "{" not in sentence
            assert new.name in sentence or old.name in sentence or "probing" in sentence
            assert found.possible or "stop all members" in sentence
            assert all("{" not in note for note in found.notes)
            for bounce in found.bounces:
                find_release(bounce.release).pinned_version(bounce.upgrade_from)
    assert hit == {rule.name for rule in PATH_RULES}


def test_every_upgrade_is_possible_at_least_in_steps():
    """From every release, some sequence of bounces leads to the newest one."""
    newest, reaches, before = RELEASES[-2], {RELEASES[-2].name}, set()
    while reaches != before:
        before = set(reaches)
        reaches |= {
            old.name
            for old in RELEASES
            if any(upgrade_path(old, find_release(n)).possible for n in before)
        }
    assert reaches == {release.name for release in RELEASES}
    assert newest.name in reaches


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            "1.1",
            "3.9",
            (
                "members of 1.1.1 read up to version 2 without version probing, and know the eager"
                " rebalance protocol only: set upgrade.from=1.1 on 3.9.2 for the first rolling"
                " bounce, and remove it in the second one"
            ),
        ),
        (
            "3.9",
            "2.0",
            (
                "members of 2.0.1 know the eager rebalance protocol only: set upgrade.from=2.0 on"
                " 3.9.2 for the first rolling bounce, and start the members as 2.0.1 in"
                " the second one"
            ),
        ),
        (
            "0.10.0",
            "0.11.0.0",
            (
                "members of 0.10.0.1 read up to version 1 without version probing, and 0.11.0.0 has"
                " no upgrade.from (KAFKA-6054); go through 0.10.2.2, or stop all members and start"
                " them as 0.11.0.0"
            ),
        ),
        (
            "3.2",
            "4.3",
            "3.2.3 and 4.3.1 both write version 11: one rolling bounce, no setting",
        ),
        (
            "2.0",
            "4.0",
            (
                "members of 2.0.1 know the eager rebalance protocol only, and 4.0.2 cannot be"
                " pinned: 4.0 removed the eager rebalance protocol (KAFKA-18839); bounce to 3.9"
                " with upgrade.from=2.0, then 3.9 without it, then 4.0.2 (3.5 to 3.8 serve as well;"
                " a bridge below 3.5 needs one more pinned bounce, KIP-904), or stop all members"
                " and start them as 4.0.2"
            ),
        ),
        (
            "4.0",
            "2.0",
            (
                "members of 2.0.1 know the eager rebalance protocol only, and 4.0.2 cannot be"
                " pinned: 4.0 removed the eager rebalance protocol (KAFKA-18839); bounce to 3.9,"
                " then 3.9 with upgrade.from=2.0, then 2.0.1 (3.5 to 3.8 serve as well; a bridge"
                " below 3.5 needs one more pinned bounce, KIP-904), or stop all members and start"
                " them as 2.0.1"
            ),
        ),
    ],
)
def test_the_reason_of_a_path_is_what_an_operator_has_to_do(old, new, reason):
    path = upgrade_path(find_release(old), find_release(new))
    assert path.reasons == (reason,)
    assert (path.old, path.new) == (find_release(old).name, find_release(new).name)


def test_every_path_names_its_releases_and_has_whole_sentences():
    for old in RELEASES:
        for new in RELEASES[::7]:
            path = upgrade_path(old, new)
            well_formed.check(path)
            assert (path.old, path.new) == (old.name, new.name)
            assert all(map(well_formed.is_sentence, (*path.reasons, *path.notes)))
