"""`assignor size` compared with sizes computed by hand, and with the encoders."""

import json

import pytest
from click.testing import CliRunner

from assignor.cli import main, make_problem
from assignor.cli.size.encodings import kafka_sizes
from assignor.cli.size.group import read_group
from encoding import (
    Assignment,
    Subscription,
    TaskId,
    TaskOffsetSums,
    apply_delta,
    encode_assignment,
    encode_delta,
    encode_subscription,
    encode_view,
    partitions_by_host,
)

ENCODINGS = [f"v{n}" for n in range(2, 12)] + ["native_full", "native_delta", "native_reference"]
FIRST, SECOND = ("00000000-0000-4000-8000-00000000000" + digit for digit in "12")


def problem(**changes):
    """Two clients, three tasks: the first runs two on two threads, the second one and a standby."""
    fields = {
        "name": "small",
        "topics": {"orders": {"partitions": 3}, "logs": {"partitions": 3}},
        "subtopologies": {"0": {"sources": ["orders"], "changelogs": ["logs"]}},
        "end_offset_sums": {"0_0": 100, "0_1": 200, "0_2": 300},
        "clients": {
            FIRST: {
                "threads": 2,
                "endpoint": "one:80",
                "active": ["0_0", "0_1"],
                "lags": {"0_0": "running", "0_1": "running"},
            },
            SECOND: {
                "endpoint": "two:80",
                "active": ["0_2"],
                "standby": ["0_0"],
                "lags": {"0_2": "running", "0_0": 30},
            },
        },
    }
    return fields | changes


def run(data, *arguments):
    text = data if isinstance(data, (str, bytes)) else json.dumps(data)
    return CliRunner().invoke(main, ["size", "--problem", "-", *arguments], input=text)


def run_json(data, *arguments):
    result = run(data, *arguments, "--format", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_the_json_has_members_the_limit_and_every_encoding():
    found = run_json(problem(), "--limit", "1000")
    assert (found["members"], found["limit"]) == (3, 1000)
    assert list(found["encodings"]) == ENCODINGS


def test_version_11_has_the_size_of_the_layout():
    found = run_json(problem())["encodings"]["v11"]
    # Versions and process id, endpoint, tasks of 18 bytes, nonce, error code, no tags.
    subscriptions = [4 + 4 + 16 + (4 + 6) + 4 + 18 * tasks + 1 + 4 + 4 for tasks in (1, 1, 2)]
    # Two hosts in each map of 10 bytes and more, four partitions in all, one topic.
    maps = (4 + 4 + 2 + 6) + 2 * 4 + 4 * (2 + 3 + 4 + 4) + 4 * 8
    own = [4 + 4 + 4 + 12 + 4, 4 + 4 + 4 + 12 + 4, 4 + 4 + 4 + 12 + 4 + (12 + 4 + 2 + 6 + 4)]
    assignments = [size + maps + 4 + 8 for size in own]
    assert found["subscription"] == pytest.approx(sum(subscriptions) / 3, abs=0.01)
    assert found["assignment"] == pytest.approx(sum(assignments) / 3, abs=0.01)
    assert found["group"] == sum(subscriptions) + sum(assignments)


def test_tasks_of_a_client_are_dealt_evenly_over_its_threads():
    names = [f"0_{n}" for n in range(7)]
    client = {"threads": 3, "active": names[:4], "standby": names[4:6], "lags": {names[6]: 5}}
    data = problem(topics={"orders": {"partitions": 7}, "logs": {"partitions": 7}})
    group = read_group(data | {"clients": {FIRST: client}})
    members = list(group.members())
    assert [member.active for member in members] == [(0, 3), (1,), (2,)]
    assert [member.standby for member in members] == [(), (4,), (5,)]
    reported = [[str(task) for task in member.sums.tasks()] for member in members]
    assert reported == [["0_0", "0_3", "0_6"], ["0_1", "0_4"], ["0_2", "0_5"]]


def test_offset_sums_are_those_that_a_member_would_write():
    client = {
        "active": ["0_0"],
        "standby": ["0_1", "0_2"],
        "lags": {"0_1": 30, "0_2": "unknown", "7_7": 4},
    }
    group = read_group(problem(clients={FIRST: client}))
    (member,) = group.members()
    assert {str(task): total for task, total in member.sums} == {
        "0_0": -2,
        "0_1": 170,
        "0_2": -3,
        "7_7": -3,
    }
    assert (member.active, member.standby) == ((0,), (1, 2))


def test_host_maps_counted_once_are_those_of_a_real_answer():
    group = read_group(make_problem(clients=5, tasks=40, standbys=2, endpoints=True, threads=2))
    members = list(group.members())
    hosts, standby_hosts = group.host_maps()
    for sizes in kafka_sizes(group, members):
        version = int(sizes.name[1:])
        for member, expected in zip(members, sizes.assignments, strict=True):
            answer = Assignment(
                version=version,
                commonly_supported_version=11,
                active_tasks=tuple(group.tasks[task] for task in member.active),
                standby_tasks={group.tasks[t]: group.partitions[t] for t in member.standby},
                partitions_by_host=hosts,
                standby_partitions_by_host=standby_hosts,
            )
            assert len(encode_assignment(answer)) == expected


def test_the_view_and_the_host_maps_are_equivalent():
    group = read_group(make_problem(clients=5, tasks=40, standbys=2, endpoints=True))
    assert partitions_by_host(group.view(1), group.partitions) == group.host_maps()


def test_the_native_full_answer_is_the_view_and_the_tasks():
    data = make_problem(clients=20, tasks=400, standbys=1, endpoints=True)
    found = run_json(data)["encodings"]
    view = len(encode_view(read_group(data).view(1_000)))
    difference = found["native_full"]["assignment"] - found["native_reference"]["assignment"]
    assert difference == pytest.approx(view - 7, abs=2)  # a reference takes 7


def test_a_client_that_joins_takes_its_fair_share_from_the_fullest():
    group = read_group(make_problem(clients=9, tasks=95, standbys=1, endpoints=True))
    after = group.with_one_joined()
    joined = after.clients[-1]
    assert (len(joined.active), len(joined.standby)) == (9, 9)
    assert not set(joined.active) & set(joined.standby)
    for kind in ("active", "standby"):
        held = [getattr(client, kind) for client in after.clients]
        assert sorted(task for tasks in held for task in tasks) == list(range(95))
        assert max(map(len, held)) - min(map(len, held)) <= 1


def test_the_delta_is_of_that_round():
    group = read_group(make_problem(clients=50, tasks=500, standbys=1, endpoints=True))
    old, after = group.view(1), group.with_one_joined()
    new = after.view(2, previous=old)
    delta = encode_delta(old, new)
    assert apply_delta(old, delta) == new
    assert len(new.hosts) == 51
    assert (new.active != -1).all()


def test_a_group_without_endpoints_has_neither_maps_nor_a_view():
    data = make_problem(clients=4, tasks=400, standbys=0)
    found = run_json(data)["encodings"]
    assert found["v2"]["assignment"] == 4 + 4 + 100 * 8 + 4 + 4
    assert found["native_full"] == found["native_reference"]
    assert found["native_full"]["assignment"] < 200


@pytest.mark.slow
def test_a_thousand_clients_are_sized_in_seconds_and_meet_the_goals():
    data = make_problem(clients=1_000, tasks=10_000, standbys=1, endpoints=True)
    found = run_json(data)
    sizes, v11 = found["encodings"], found["encodings"]["v11"]["assignment"]
    assert found["members"] == 1_000
    assert v11 > 240_000
    assert sizes["native_full"]["assignment"] <= 0.2 * v11
    assert sizes["native_delta"]["assignment"] <= 0.005 * v11
    assert sizes["native_full"]["subscription"] <= sizes["v11"]["subscription"]
    fitting = [name for name, size in sizes.items() if size["fits"]]
    assert fitting == ["native_delta", "native_reference"]


def test_the_limit_decides_what_fits():
    group = run_json(problem())["encodings"]["v11"]["group"]
    assert run_json(problem(), "--limit", str(group))["encodings"]["v11"]["fits"]
    assert not run_json(problem(), "--limit", str(group - 1))["encodings"]["v11"]["fits"]


def test_the_text_is_a_table_and_a_verdict():
    result = run(problem(), "--limit", "600")
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0] == "3 members; mean bytes per member, and bytes of the whole group"
    assert lines[1].split() == ["encoding", "subscription", "assignment", "group", "fits"]
    assert [line.split()[0] for line in lines[2:15]] == ENCODINGS
    assert "v11" in lines[11]
    assert "times the limit" in lines[11]
    assert lines[15].startswith(
        "encodings within the broker's limit of 600 bytes for the group: v2, v3, "
    )
    assert "v11" not in lines[15]
    assert max(map(len, lines)) <= 100


def test_the_bytes_of_the_protocol_and_changed_verdicts_are_reported():
    plenty = run(problem())
    assert "bytes of the consumer protocol" in plenty.output
    assert "no verdict changes" in " ".join(plenty.output.split())
    tight = run(problem(), "--limit", "1000", "--format", "json")
    assert json.loads(tight.stdout)["encodings"]["v2"]["fits"]
    assert "these no longer fit: v2" in tight.stderr
    assert run(problem(), "--format", "json").stderr == ""


def test_what_a_leader_steps_down_to_is_reported():
    data = make_problem(clients=100, tasks=1_000, standbys=1, endpoints=True)
    text = " ".join(run(data, "--limit", "200000").output.split())
    assert "while no member has the routing view" in text
    assert "members get a reference instead of the full view, which makes it" in text
    assert "has the routing view" not in run(data, "--limit", "2000000").output


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("{", "line 1, column 2: broken JSON"),
        ("[]", "is not a JSON object"),
        ("{}", "no clients"),
        (b"\xff", "not UTF-8 at byte 0"),
        ('{"a": 1}\n{"a": 2}\n', "has 2 problems; give one"),
        (problem(clients={FIRST: {"endpoint": "here"}}), "endpoint 'here'; give host:port"),
        (problem(clients={FIRST: {"endpoint": 80}}), "endpoint 80; give host:port"),
        (problem(clients={FIRST: {"standby": ["x"]}}), "names task 'x'; tasks are"),
        (problem(clients={FIRST: {"threads": 0}}), "0 threads in total"),
        (problem(clients={FIRST: {"threads": 1_000_000}, SECOND: {}}), "1000001 threads in total"),
        (problem(clients={FIRST: {"active": ["0_0"]}, SECOND: {"active": ["0_0"]}}), "0_0"),
        (
            problem(subtopologies={"20000": {"sources": ["orders"]}}, end_offset_sums={}),
            "subtopology 20000 is above 16383",
        ),
    ],
)
def test_invalid_input_is_one_sentence_and_status_2(data, message):
    result = run(data)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_file_that_is_not_there_is_status_2():
    result = CliRunner().invoke(main, ["size", "--problem", "not-there.json"])
    assert result.exit_code == 2
    assert "not-there.json" in result.stderr


def test_the_subscription_of_a_single_member_is_that_of_the_encoder():
    client = {"active": ["0_0"], "endpoint": "one:80", "tags": {"zone": "a"}}
    found = run_json(problem(clients={FIRST: client}))["encodings"]
    expected = Subscription(
        version=11,
        latest_supported_version=11,
        process_id=read_group(problem()).clients[0].process_id,
        user_endpoint="one:80",
        client_tags={"zone": "a"},
        task_offset_sums=TaskOffsetSums.from_mapping({TaskId(0, 0): -2}),
    )
    assert found["v11"]["subscription"] == len(encode_subscription(expected))
