"""`assignor storage`: a folder is formatted once, and described."""

import json

import pytest
from click.testing import CliRunner

from assignor.cli import main
from assignor.levels.log import FeatureLog, Note, opened_log
from assignor.stores import FolderDisk
from probing.features import LevelRange


@pytest.fixture
def storage(tmp_path):
    def run(command, *options, folder=tmp_path / "log"):
        found = CliRunner().invoke(main, ["storage", command, "--directory", str(folder), *options])
        return found.exit_code, found.stdout, found.stderr

    run.folder = tmp_path / "log"
    return run


@pytest.mark.kip("778-8", "core")
def test_a_folder_is_formatted_with_a_default_that_every_release_reads(storage):
    status, out, err = storage("format")
    assert (status, err) == (0, "")
    assert out == f"{storage.folder} is formatted: persistent.metadata.version 1\n"


@pytest.mark.kip("778-8", "core")
def test_format_takes_a_level_and_is_refused_on_a_formatted_folder_by_default(storage):
    status, out, _ = storage(
        "format", "--metadata-version", "2", "--feature", "assignment.protocol=v101"
    )
    assert status == 0
    assert "assignment.protocol 101 (v101), persistent.metadata.version 2" in out
    status, out, err = storage("format")
    assert (status, out) == (1, "")
    assert "already exists; add --ignore-formatted" in err
    status, out, _ = storage("format", "--ignore-formatted", "--format", "json")
    body = json.loads(out)
    assert (status, body["is_new"], body["levels"]["persistent.metadata.version"]) == (0, False, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--metadata-version", "9"), "persistent.metadata.version has no level '9'"),
        (("--feature", "nonsense=1"), "there is no feature 'nonsense'"),
        (("--feature", "task.placement"), "give NAME=LEVEL"),
        (("--feature", "persistent.metadata.version=2"), "once for each feature"),
    ],
)
def test_an_unknown_level_is_wrong_usage_and_makes_no_folder(storage, options, message):
    status, _, err = storage("format", *options)
    assert (status, message in err, storage.folder.exists()) == (2, True, False)


def test_describe_shows_the_format_and_the_current_levels(storage):
    assert storage("describe")[0] == 1
    storage("format", "--metadata-version", "2")
    with opened_log(storage.folder) as log:
        log.change({"task.placement": 2}, Note(at_ms=1_700_000_000_000, who="ada", why=""))
    status, out, _ = storage("describe")
    assert status == 0
    assert "epoch 1, changed 2023-11-14 22:13:20 UTC by ada" in out
    assert "task.placement 2 (even)" in out
    body = json.loads(storage("describe", "--format", "json")[1])
    assert body["levels"] == {"persistent.metadata.version": 2}
    assert body["finalized"] == {"persistent.metadata.version": 2, "task.placement": 2}
    assert (body["epoch"], body["batches"], body["format"]) == (1, 1, 3)


def test_a_disk_that_refuses_is_an_environment_failure(storage, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("no folder", encoding="utf-8")
    status, _, err = storage("format", folder=blocked / "log")
    assert (status, "cannot be" in err) == (3, True)


@pytest.fixture
def upgrade(storage):
    """`assignor features upgrade` on the folder."""

    def run(*options):
        where = ("--directory", str(storage.folder))
        found = CliRunner().invoke(main, ["features", "upgrade", *where, *options])
        return found.exit_code, found.stdout, found.stderr

    return run


@pytest.mark.kip("384-7", "core")
@pytest.mark.parametrize("is_json", [False, True])
@pytest.mark.parametrize(
    ("options", "warned"),
    [
        (("--metadata", "2"), "version 2 is written from now on: the first write makes a rollback"),
        (
            ("--metadata", "2", "--feature", "assignment.protocol=101"),
            (
                "version 2 is raised together with the wire version: the first write makes a"
                " rollback impossible"
            ),
        ),
        (("--feature", "assignment.protocol=101"), ""),
        (("--metadata", "2", "--dry-run"), "the first write makes a rollback"),
    ],
)
def test_raising_what_is_written_is_done_and_warned_of(storage, upgrade, options, warned, is_json):
    storage("format")
    status, out, err = upgrade(*options, *(("--format", "json") if is_json else ()))
    assert status == 0
    assert (warned in err, err.startswith("warning: ")) == (True, bool(warned))
    if is_json:
        assert [warned in warning for warning in json.loads(out)["warnings"]] == [True] * bool(
            warned
        )
    levels = json.loads(storage("describe", "--format", "json")[1])["finalized"]
    wanted = 1 if "--metadata" not in options or "--dry-run" in options else 2
    assert levels["persistent.metadata.version"] == wanted


def test_levels_of_a_folder_are_changed_and_what_is_lost_is_reported(tmp_path):
    def features(command, *options):
        where = ("--directory", str(tmp_path))
        found = CliRunner().invoke(main, ["features", command, *where, *options])
        return found.exit_code, found.stdout, found.stderr

    status, _, err = features("describe")
    assert (status, "assignor storage format" in err) == (1, True)
    assert str(tmp_path) in err
    options = ("--metadata-version", "2", "--feature", "task.placement=1")
    made = CliRunner().invoke(main, ["storage", "format", "--directory", str(tmp_path), *options])
    assert made.exit_code == 0
    log = FeatureLog(FolderDisk(tmp_path))
    log.register("m1", {"persistent.metadata.version": LevelRange(min=1, max=2)})
    status, out, err = features("downgrade", "--metadata", "1", "--unsafe", "--yes")
    assert status == 0
    assert "was downgraded from 2 to 1" in out
    assert err.startswith("warning: lost: the supported levels of 1 members (m1)")
    assert features("describe")[0] == 0
