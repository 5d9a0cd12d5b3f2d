"""Names of clients: distinct, and no longer than that takes."""

from uuid import UUID

from assignor.inspection import inspect_group, short_id
from encoding import TaskId
from tests.assignor.inspection.described_groups import group_of, member


def test_clients_with_one_name_differ_by_their_process_ids():
    numbers = [UUID(f"4becfd3{digit}" + 24 * "0").int for digit in "89"]
    group = group_of(
        *(
            member("same", process=number, thread=thread, active=[TaskId(0, thread)])
            for thread, number in enumerate(numbers)
        )
    )
    names = [client.client for client in inspect_group(group).clients]
    assert names == ["same 4becfd38", "same 4becfd39"]


def test_threads_of_one_process_have_its_name():
    group = group_of(member("a", thread=1), member("a", thread=2), member("b"))
    assert [client.client for client in inspect_group(group).clients] == ["a", "b"]


def test_a_short_id_is_the_shortest_unique_prefix_of_at_least_8_characters():
    others = ["0123456789a", "0123456789b", "9"]
    assert short_id("0123456789a", others) == "0123456789a"
    assert short_id("0123456789a", ["0123456789a", "012345678x"]) == "0123456789"
    assert short_id("abcdefghijk", others) == "abcdefgh"
