"""What members and operators write beside a committed offset."""

import pytest

from assignor.embedding.commit_metadata import COMMIT_METADATA, is_members_commit


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (COMMIT_METADATA, True),
        ("AQAAAYwAAAAA", True),  # of Kafka Streams: version 1 and a time
        ("AgAAAYwAAAAA", True),
        ("", False),
        (None, False),
        ("moved by hand", False),
        ("AAAA", False),
        ("\x00", False),
    ],
)
def test_commits_of_members_are_told_from_those_of_operators(metadata, expected):
    assert is_members_commit(metadata) is expected


def test_members_of_kafka_streams_read_the_metadata_as_an_unknown_time():
    """Its TopicPartitionMetadata: base64 of a version, 1, and a time, -1 where it is unknown."""
    assert COMMIT_METADATA == "Af//////////"
