"""The rows are well formed and equal to measurements of the published releases."""

import tomllib
from pathlib import Path

import pytest

import probing
from probing import RELEASES, find_release
from probing.releases import rows as data
from probing.releases.behaviour import MemberModel
from probing.releases.lookup import parse_order
from probing.upgrades.formats import ONE_WAY_FORMATS
from tests.encoding.golden_files import LATEST

NAMES = {release.name for release in RELEASES}


@pytest.mark.parametrize(("name", "latest"), LATEST.items())
def test_the_latest_version_is_the_constant_of_the_published_jar(name, latest):
    assert find_release(name).latest_version == latest


def test_every_row_starts_at_a_release_that_exists():
    tables = (
        data.LATEST_VERSION_SINCE,
        data.LEADER_MODEL_SINCE,
        data.MEMBER_MODEL_SINCE,
        data.UPGRADE_FROM_SINCE,
        ONE_WAY_FORMATS,
        data.CRASHING_VALUES,
    )
    assert {row[0] for table in tables for row in table} <= NAMES
    issues = {name for issue in data.ISSUES for name in (issue.since, *issue.fixed_in)}
    assert issues <= NAMES


def test_every_row_of_a_table_stands_after_the_one_before():
    for table in (
        data.LATEST_VERSION_SINCE,
        data.LEADER_MODEL_SINCE,
        data.MEMBER_MODEL_SINCE,
        data.UPGRADE_FROM_SINCE,
    ):
        orders = [parse_order(row[0]) for row in table]
        assert orders == sorted(orders)


def test_a_version_rises_by_what_a_release_brought_and_never_falls():
    versions = [version for _, version, _ in data.LATEST_VERSION_SINCE]
    assert versions == sorted(set(versions))


def test_an_issue_has_one_row_and_a_sentence():
    ids = [issue.id for issue in data.ISSUES]
    assert len(ids) == len(set(ids))
    assert all(issue.summary and issue.fixed_in for issue in data.ISSUES)


def test_an_issue_begins_and_ends_where_its_tracker_and_the_tags_say():
    """Stated a second time: a wrong number in a row is otherwise a plan that nobody questions."""
    assert {issue.id: (issue.since, *issue.fixed_in) for issue in data.ISSUES} == {
        "KAFKA-6054": ("0.10.0.0", "0.10.2.2", "0.11.0.3", "1.0.2", "1.1.1", "2.0.0"),
        "KAFKA-5037": ("0.10.0.0", "2.1.0"),
        "KAFKA-8649": ("2.0.0", "2.2.2", "2.3.1", "2.4.0"),
        "KAFKA-8972": ("2.0.0", "2.4.0"),
        "KAFKA-9821": ("2.4.0", "2.6.0"),
        "KAFKA-9525": ("2.3.0", "2.6.0"),
        "KAFKA-9568": ("2.3.0", "2.6.0"),
        "KAFKA-10455": ("2.6.0", "2.6.1", "2.7.0"),
        "KAFKA-14382": ("2.6.0", "3.3.2", "3.4.0"),
        "upgrade.from=3.4": ("3.5.0", "3.5.2"),
    }


def test_every_published_patch_has_its_row():
    for patches in data.PATCHES_BY_SERIES.values():
        assert patches == tuple(range(len(patches)))
    assert {"3.3.0", "3.9.2", "4.0.2", "4.1.2", "4.2.2", "4.3.1", "4.4.0"} <= NAMES


def test_every_row_names_its_source_and_experiments_that_exist():
    root = Path(probing.__file__).parents[1]
    files = (
        root / "probing/releases/releases.toml",
        root / "system_tests/plan/changes/changes.toml",
        root / "system_tests/plan/changes/streams.toml",
    )
    for path in files:
        for name, rows in tomllib.loads(path.read_text(encoding="utf-8")).items():
            if name in ("patches", "native_version", "native_release", "brokers"):
                continue
            assert [row for row in rows if not row.get("source")] == []
            shown = {row["shown"] for row in rows if "shown" in row}
            assert [test for test in sorted(shown) if not (root / test).is_file()] == []


@pytest.mark.parametrize(
    ("issue", "models"),
    [
        ("KAFKA-8649", {MemberModel.UNGUARDED}),
        ("KAFKA-8972", {MemberModel.UNGUARDED, MemberModel.GUARDED}),
        ("KAFKA-14382", {MemberModel.FOLLOWUP}),
    ],
)
def test_an_issue_of_members_is_open_in_exactly_the_releases_that_behave_so(issue, models):
    kafka = [release for release in RELEASES if not release.is_native]
    is_open = {release.name for release in kafka if issue in release.open_issues}
    assert is_open == {release.name for release in kafka if release.member_model in models}
