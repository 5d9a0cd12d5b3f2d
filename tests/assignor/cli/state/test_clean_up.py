"""State directories that are to be removed: whose the files in them are."""

import sqlite3
from contextlib import closing

import pytest

from assignor import ConfigError
from assignor.embedding.clean_up import local_tasks
from assignor.embedding.process_id import LOCK_NAME
from assignor.embedding.state_stores.sqlite import SqliteTable
from encoding import TaskId, TopicPartition

CHANGELOG = "app-x-changelog"


@pytest.fixture
def file(tmp_path):
    (tmp_path / LOCK_NAME).touch()
    (tmp_path / "0_0").mkdir()
    made = tmp_path / "0_0" / "x.db"
    SqliteTable(made, TopicPartition(CHANGELOG, 0)).close()
    return made


@pytest.mark.parametrize("pragma", ["user_version = 2", "application_id = 77"])
def test_a_file_of_another_release_or_program_is_not_removed(file, pragma):
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"pragma {pragma}")
        connection.commit()
    with (
        pytest.raises(ConfigError, match=r"x.db (has format 2|is a SQLite file of another)"),
        local_tasks(file.parent.parent, {CHANGELOG}),
    ):
        pass


@pytest.mark.parametrize("content", [None, b"damaged"])
def test_own_copies_are_removed_also_damaged(file, content):
    if content is not None:
        file.write_bytes(content)
    with local_tasks(file.parent.parent, {CHANGELOG}) as found:
        [task] = found
        assert task.task == TaskId(0, 0)
        task.remove()
    assert not file.parent.exists()
