import copy

import pytest

from encoding import KAFKA_VERSIONS
from probing import (
    NEWEST_KAFKA,
    RELEASES,
    LeaderModel,
    MemberModel,
    RebalanceProtocol,
    ReleaseError,
    Standing,
    find_release,
)
from probing.releases import PATCHES_BY_SERIES
from probing.releases.lookup import parse_order
from probing.versions import START_VERSION
from tests.versions import LATER, NEWEST, NEWEST_SERIES

SERIES = list(dict.fromkeys(release.series for release in RELEASES))
VERSION_1 = {"0.10.0"}
VERSION_2 = {"0.10.1", "0.10.2", "0.11.0", "1.0", "1.1"}


def accepted(name):
    return list(find_release(name).upgrade_from)


@pytest.mark.kip("268-12", "core")
@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
def test_every_value_resolves_to_its_pin_or_is_refused_with_the_accepted_ones(release):
    for row in release.upgrade_from_rows:
        expected = 1 if row.value in VERSION_1 else 2 if row.value in VERSION_2 else None
        assert row.pinned_version == expected
        if row.standing is Standing.ACCEPTED:
            assert release.pinned_version(row.value) == (expected or release.start_version)
            continue
        with pytest.raises(ReleaseError, match="set one of the accepted values") as error:
            release.pinned_version(row.value)
        assert all(value in str(error.value) for value in release.upgrade_from)


@pytest.mark.kip("268-12", "core")
@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
def test_an_unknown_value_is_refused_and_the_accepted_ones_are_named(release):
    for value in ("", "2.3.1", "5.0", "null"):
        with pytest.raises(ReleaseError, match="unknown to release") as error:
            release.pinned_version(value)
        assert all(name in str(error.value) for name in release.upgrade_from)
        assert release.name in str(error.value)


def test_without_a_value_a_member_writes_its_start_version():
    assert all(release.pinned_version(None) == release.start_version for release in RELEASES)
    for release in RELEASES:
        start = START_VERSION if release.is_native else release.latest_version
        assert release.start_version == start


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("0.10.2.2", "0.10.0", "0.10.0"),
        ("0.11.0.3", "0.10.0", "0.10.0"),
        ("1.0.2", "0.10.0", "0.10.0"),
        ("1.1.1", "0.10.0", "0.10.0"),
        ("2.0.0", "0.10.0", "1.1"),
        ("2.3.1", "0.10.0", "1.1"),
        ("2.4.0", "0.10.0", "2.3"),
        ("3.2.3", "0.10.0", "2.3"),
        ("3.3.0", "0.10.0", "3.2"),
        ("3.4.0", "0.10.0", "3.3"),
        ("3.5.0", "0.10.0", "3.3"),
        ("3.5.2", "0.10.0", "3.4"),
        ("3.6.0", "0.10.0", "3.4"),
        ("3.6.2", "0.10.0", "3.5"),
        ("3.9.2", "0.10.0", "3.8"),
        ("4.0.0", "2.4", "3.9"),
        ("4.1.2", "2.4", "4.0"),
        ("4.2.0", "2.4", "4.1"),
        ("4.3.1", "2.4", "4.2"),
        ("4.4.0", "2.4", "4.3"),
        ("native", "0.10.0", NEWEST_SERIES),
    ],
)
def test_the_accepted_values_run_from_one_series_to_another(name, first, last):
    values = accepted(name)
    assert (values[0], values[-1]) == (first, last)
    assert values == SERIES[SERIES.index(first) : SERIES.index(last) + 1]


@pytest.mark.parametrize("name", ["0.10.0.1", "0.10.1.1", "0.10.2.1", "1.0.1", "1.1.0"])
def test_before_the_backport_there_is_no_such_setting(name):
    assert accepted(name) == []
    with pytest.raises(ReleaseError, match="no such setting"):
        find_release(name).pinned_version("0.10.0")


@pytest.mark.parametrize("name", ["3.5.0", "3.5.1"])
def test_3_4_is_accepted_by_the_configuration_and_ends_the_assignor(name):
    with pytest.raises(ReleaseError, match="unknown to the assignor"):
        find_release(name).pinned_version("3.4")
    assert "upgrade.from=3.4" in find_release(name).open_issues


@pytest.mark.parametrize("name", ["4.0.0", "4.1.1"])
def test_the_values_of_the_eager_protocol_are_refused_by_4_0_and_4_1(name):
    with pytest.raises(ReleaseError, match="KAFKA-18839"):
        find_release(name).pinned_version("2.3")
    with pytest.raises(ReleaseError, match="unknown to release"):
        find_release("4.2.0").pinned_version("2.3")


def test_a_value_up_to_2_3_makes_a_cooperative_release_eager():
    rows = find_release("3.9").upgrade_from
    eager = [v for v, row in rows.items() if row.rebalance_protocol is RebalanceProtocol.EAGER]
    assert eager == SERIES[: SERIES.index("2.3") + 1]
    assert find_release("2.3.1").rebalance_protocol is RebalanceProtocol.EAGER
    assert find_release("2.4.0").rebalance_protocol is RebalanceProtocol.COOPERATIVE


def test_formats_are_kept_old_up_to_the_series_that_changed_them():
    rows = find_release("3.9").upgrade_from
    assert [len(rows[value].formats) for value in ("2.8", "3.3", "3.4", "3.5")] == [1, 1, 1, 0]
    assert find_release("3.2.3").upgrade_from["2.3"].formats == ()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("2.3", "2.3.1"),
        ("2.3.0", "2.3.0"),
        ("0.10.2", "0.10.2.2"),
        ("0.10.2.1", "0.10.2.1"),
        *((series, f"{series}.{patches[-1]}") for series, patches in PATCHES_BY_SERIES.items()),
        ("native", "native"),
        ("next", "next"),
        ("incompatible", "incompatible"),
        ("3", "3.9.2"),
        ("4", NEWEST_KAFKA),
        (f" {NEWEST_KAFKA}\n", NEWEST_KAFKA),
    ],
)
def test_a_series_or_a_major_number_stands_for_its_newest_patch(text, name):
    assert find_release(text).name == name


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("2.3.7", "the newest patch of 2.3 recorded here is 2.3.1; it stands for a later one"),
        ("0.10", "0.10.0, 0.10.1, 0.10.2"),
        ("3.10", "3.9.2, 4.0.0"),
        ("5.0", f"the newest release recorded here is {NEWEST_KAFKA}."),
        ("0.9", "0.10.0.0"),
        ("nativ", "native"),
        ("native2", "release is native."),  # and no release for tests
        ("incompatibel", "incompatible"),
        ("latest", f"known are 0.10.0.0 to {NEWEST_KAFKA}, the newest, and"),
        ("2.3.x", "2.3"),
        ("v3.9", "known releases are 3.9, 3.9.2, 3.9.1."),
        ("", "0.10.0.0"),
        ("2." + "9" * 5000, "2.8.2, 3.0.0"),
        ("²", "0.10.0.0"),
    ],
)
def test_an_unknown_release_is_refused_with_the_nearest_known_ones(text, near):
    with pytest.raises(ReleaseError, match=r"is unknown; (the ne|known are)") as error:
        find_release(text)
    assert len(str(error.value)) < 200
    if len(text) < 20:
        assert near in f"{error.value}."


def test_releases_are_in_order_and_each_name_is_found():
    assert [r.order for r in RELEASES] == sorted(r.order for r in RELEASES)
    assert len({r.name for r in RELEASES}) == len(RELEASES)
    assert all(find_release(r.name) is r for r in RELEASES)
    assert [r.name for r in RELEASES if r.is_native] == ["native", "next", "incompatible"]
    assert all(r.is_native for r in RELEASES[-3:])


def test_what_a_release_knows_is_a_set_that_ends_at_its_latest():
    for release in RELEASES:
        assert list(release.known_versions) == sorted(set(release.known_versions))
        assert max(release.known_versions) == release.latest_version


@pytest.mark.parametrize(
    ("name", "versions"),
    [("native", (101,)), ("next", (101, 102)), ("incompatible", (101, 103))],
)
def test_native_releases_know_every_version_of_kafka_and_native_ones(name, versions):
    release = find_release(name)
    assert release.is_native
    assert release.native_versions == versions
    assert release.latest_native_version == versions[-1]
    assert release.known_versions == KAFKA_VERSIONS
    assert release.latest_version == NEWEST
    assert release.readable_versions == (*KAFKA_VERSIONS, *versions)
    assert not set(range(LATER, 101)) & set(release.readable_versions)


def test_kafkas_releases_know_no_native_version():
    for release in RELEASES:
        if not release.is_native:
            assert release.latest_native_version is None
            assert release.readable_versions == release.known_versions
            assert not release.reads(101)
            assert release.reads(release.latest_version)
            assert not release.reads(release.latest_version + 1)


@pytest.mark.parametrize(
    ("name", "reads"),
    [("native", [101, 102]), ("next", [101, 102]), ("incompatible", [101, 102, 103])],
)
def test_a_later_body_is_read_if_it_names_this_version(name, reads):
    release = find_release(name)
    assert [v for v in range(1, 200) if release.reads(v)] == [*KAFKA_VERSIONS, *reads]


def test_native_starts_and_ends_at_kafkas_newest_version():
    native = find_release("native")
    assert native.known_versions == KAFKA_VERSIONS
    assert native.leader_model is LeaderModel.NATIVE
    assert native.member_model is MemberModel.NATIVE


@pytest.mark.parametrize(
    ("issue", "open_in", "fixed_in"),
    [
        ("KAFKA-6054", "0.10.0.1 0.10.2.1 0.11.0.2 1.0.1 1.1.0", "0.10.2.2 1.0.2 1.1.1 2.0.0"),
        ("KAFKA-8649", "2.0.1 2.1.1 2.2.1 2.3.0", "1.1.1 2.2.2 2.3.1 2.4.0 3.9.1"),
        ("KAFKA-8972", "2.0.0 2.3.1", "2.4.0"),
        ("KAFKA-9821", "2.4.0 2.5.1", "2.3.1 2.6.0"),
        ("KAFKA-10455", "2.6.0", "2.5.1 2.6.1 2.7.0"),
        ("KAFKA-14382", "2.6.0 3.3.1", "2.5.1 3.3.2 3.4.0 native"),
    ],
)
def test_an_issue_is_open_until_the_patch_that_fixed_it_on_its_branch(issue, open_in, fixed_in):
    assert all(issue in find_release(name).open_issues for name in open_in.split())
    assert not any(issue in find_release(name).open_issues for name in fixed_in.split())


@pytest.mark.parametrize(
    ("name", "leader", "member"),
    [
        ("0.10.0.1", LeaderModel.VERSION_1_ONLY, MemberModel.NO_PROBING),
        ("0.10.1.1", LeaderModel.ALWAYS_VERSION_2, MemberModel.NO_PROBING),
        ("0.10.2.1", LeaderModel.ALWAYS_VERSION_2, MemberModel.NO_PROBING),
        ("0.10.2.2", LeaderModel.LOWEST_USED, MemberModel.NO_PROBING),
        ("0.11.0.0", LeaderModel.ALWAYS_VERSION_2, MemberModel.NO_PROBING),
        ("1.1.1", LeaderModel.LOWEST_USED, MemberModel.NO_PROBING),
        ("2.1.1", LeaderModel.EMPTY_AND_OWN, MemberModel.UNGUARDED),
        ("2.2.2", LeaderModel.EMPTY_AND_LOWEST, MemberModel.GUARDED),
        ("2.3.0", LeaderModel.EMPTY_AND_OWN, MemberModel.UNGUARDED),
        ("2.3.1", LeaderModel.EMPTY_AND_LOWEST, MemberModel.GUARDED),
        ("2.5.1", LeaderModel.SEPARATE_TASKS, MemberModel.TASKS_KEPT),
        ("2.6.3", LeaderModel.NORMAL_OR_DEAD, MemberModel.FOLLOWUP),
        ("2.7.0", LeaderModel.NORMAL_OR_ERROR, MemberModel.FOLLOWUP),
        ("3.3.2", LeaderModel.NORMAL_OR_ERROR, MemberModel.FOLLOWUP_WAITS),
    ],
)
def test_the_models_follow_the_patch_and_not_the_series(name, leader, member):
    release = find_release(name)
    assert (release.leader_model, release.member_model) == (leader, member)


def test_a_release_can_be_copied_and_used_as_a_key():
    release = find_release("2.3.1")
    assert copy.deepcopy(release) == release
    assert {release: 1}[find_release("2.3")] == 1


def test_only_ascii_numbers_are_an_order():
    assert parse_order("2.3.1") == (2, 3, 1)
    assert [parse_order(text) for text in ("", "2.", "2.x", "²", "1" * 7)] == [None] * 5


@pytest.mark.parametrize(
    ("text", "near"),
    [("3.10", "s are 3.9.2, 4.0.0"), ("0.9", " is 0.10.0.0")],
)
def test_between_two_releases_only_these_are_near(text, near):
    with pytest.raises(ReleaseError) as error:
        find_release(text)
    assert str(error.value).endswith(f"nearest known release{near}")
