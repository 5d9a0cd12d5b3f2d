"""Flat rows: what a group table makes of them, and back."""

import pytest

from spark_assign import BadTable, ddl_of, from_rows, place, row_schema, to_rows
from tests.nightly import sample

SCHEMA = (
    "app string, topic string, partition int, client string, standby boolean, behind long, "
    "stateful boolean, end_offset long, zone string"
)
NAMES = {"group": "app", "member": "client", "lag": "behind", "rack": "zone"}


def row(app, topic, partition, client, **more):
    columns = {name.split()[0]: None for name in SCHEMA.split(", ")}
    return columns | {"app": app, "topic": topic, "partition": partition, "client": client} | more


ROWS = [
    # Two topics, of which one has state; b holds a copy, c runs nothing.
    *[row("shop", "orders", p, "a", stateful=True, end_offset=100, zone="r1") for p in range(3)],
    row("shop", "orders", 0, "b", standby=True, behind=7),
    row("shop", "clicks", 0, "b"),
    row("shop", "clicks", 1, None),
    row("shop", None, None, "c"),
    # Two members run one partition.
    row("twice", "t", 0, "a"),
    row("twice", "t", 0, "b"),
    # The table has no client, and nothing at all.
    row("empty", "t", 0, None),
    row("nothing", None, None, None),
    # Rows that contradict each other.
    row("zones", "t", 0, "a", zone="r1"),
    row("zones", "t", 1, "a", zone="r2"),
    row("zones", "t", 2, "a"),
    row("ends", "t", 0, "a", stateful=True, end_offset=5),
    row("ends", "t", 0, "b", standby=True, end_offset=6),
    row("state", "t", 0, "a", stateful=True),
    row("state", "t", 0, "b", stateful=False, standby=True),
    row("lags", "t", 0, "a", standby=True, behind=3),
    row("lags", "t", 0, "a", standby=True, behind=9),
    row("again", "t", 0, "a"),
    row("again", "t", 0, "a"),
    row("half", None, 3, "a"),
]


@pytest.fixture(scope="module")
def groups(spark):
    return from_rows(spark.createDataFrame(ROWS, SCHEMA), NAMES).localCheckpoint()


def test_rows_become_tasks_copies_and_clients(groups):
    [shop] = groups.where("name = 'shop'").collect()
    tasks = {(task.subtopology, task.partition): task for task in shop.tasks}
    # Topics are numbered by name: clicks, orders.
    assert sorted(tasks) == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]
    assert (tasks[0, 0].owner, tasks[0, 1].owner, tasks[1, 2].owner) == ("b", None, "a")
    assert [tasks[key].stateful for key in sorted(tasks)] == [False, False, True, True, True]
    copies = {copy.client: copy.lag for copy in tasks[1, 0].copies}
    assert copies == {"a": -1, "b": 7}
    assert tasks[1, 0].end_offset_sum == 100
    assert tasks[0, 0].copies == []
    clients = {client.client: client.rack for client in shop.clients}
    assert clients == {"a": "r1", "b": None, "c": None}
    topics = {number: [t.topic for t in found] for number, found in shop.topics.items()}
    assert topics == {0: ["clicks"], 1: ["orders"]}


def test_flat_rows_come_back_with_their_topics_and_invalid_groups_with_reasons(groups):
    placed = place(groups, keep=["topics"], on_error="reject", strategy="sticky").localCheckpoint()
    rejects = {r.name: tuple(r.reject) for r in placed.where("reject is not null").collect()}
    of_partition = "rows of partition 0 of topic t have different values; give one"
    of_copy = "rows of partition 0 of topic t and member a have different values; give one"
    again = "several rows of partition 0 of topic t and member a; give it once"
    half = "a row has topic and partition, or neither; add it"
    assert rejects == {
        "twice": ("tasks", "0_0", "the task is given twice; a task has one row"),
        "empty": ("clients", "null", "a group needs a client"),
        "nothing": ("clients", "null", "a group needs a client"),
        "zones": ("rack", "r1 and r2", "rows of member a have different values; give one"),
        "ends": ("end_offset", "5 and 6", of_partition),
        "state": ("stateful", "false and true", of_partition),
        "lags": ("lag", "3 and 9", of_copy),
        "again": ("partition", "0", again),
        "half": ("topic", "null", half),
    }
    rows = to_rows(placed).orderBy("topic", "partition").collect()
    assert {r.group for r in rows} == {"shop"}
    active = [(r.topic, r.subtopology, r.partition) for r in rows if r.role == "active"]
    assert active == [
        ("clicks", 0, 0),
        ("clicks", 0, 1),
        ("orders", 1, 0),
        ("orders", 1, 1),
        ("orders", 1, 2),
    ]
    assert {r.member for r in rows} == {"a", "b", "c"}
    without = to_rows(placed.drop("topics")).where("role = 'active'").collect()
    assert sorted((r.topic, r.subtopology, r.partition) for r in without) == [
        (None, *key[1:]) for key in sorted(active)
    ]


def test_topics_of_one_subtopology_are_one_task_for_each_partition(spark):
    rows = [
        {"group": "g", "topic": t, "partition": p, "member": "a", "subtopology": 4}
        | {"lag": 5, "end_offset": 10, "stateful": True}
        for t, p in (("left", 0), ("left", 1), ("right", 0))
    ]
    schema = "group string, topic string, partition long, member string, subtopology int, lag int, "
    # A subtopology that is null is not given; a group gives all or none.
    for name, numbers in (("none", [None, None]), ("some", [None, 7])):
        for t, number in zip(("x", "y"), numbers, strict=True):
            more = {"lag": None, "end_offset": None, "stateful": None, "subtopology": number}
            rows.append(rows[0] | {"group": name, "topic": t} | more)
    rows.append(rows[-1] | {"group": "wide", "partition": 2**32})
    flat = spark.createDataFrame(rows, f"{schema} end_offset int, stateful boolean")
    groups = {row.name: row for row in from_rows(flat).collect()}
    assert sorted(task.subtopology for task in groups["none"].tasks) == [0, 1]
    everything = place(from_rows(flat), keep=["topics"], on_error="reject").localCheckpoint()
    rejects = {r.name: tuple(r.reject) for r in everything.where("reject is not null").collect()}
    assert rejects == {
        "some": ("subtopology", "null", "other rows of the group have one; add it"),
        "wide": ("tasks.partition", "4294967296", "numbers end at 2147483647"),
    }
    group, placed = groups["g"], everything.where("name = 'g'")
    ends = {task.partition: (task.end_offset_sum, task.copies[0].lag) for task in group.tasks}
    assert ends == {0: (20, 10), 1: (10, 5)}
    found = to_rows(placed).select("topic", "subtopology", "partition", "role").collect()
    assert sorted(map(tuple, found)) == [
        ("left", 4, 0, "active"),
        ("left", 4, 1, "active"),
        ("right", 4, 0, "active"),
    ]


def test_names_of_columns_match_as_in_spark(spark):
    columns = "Group string, TOPIC string, partition int, Client string, Stateful boolean"
    rows = spark.createDataFrame([("g", "t", 0, "a", True)], columns)
    [group] = from_rows(rows, {"member": "CLIENT"}).collect()
    [task] = group.tasks
    assert (group.name, task.owner, task.stateful) == ("g", "a", True)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(BadTable, match=r"column group \(string\) is missing; column topic"):
            from_rows(rows, {"member": "Client"})
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_missing_columns_and_unknown_fields_are_named(spark):
    rows = spark.createDataFrame([("g", "t")], "group string, topic string")
    with pytest.raises(BadTable, match=r"column partition \(int\) is missing; column member"):
        from_rows(rows)
    with pytest.raises(BadTable, match="columns: no field owner; there are group, topic, "):
        from_rows(rows, {"owner": "topic"})
    with pytest.raises(BadTable, match=r"partition: upper\(topic\).*; give an expression as a"):
        from_rows(rows, {"partition": "upper(topic)", "member": "topic"})
    twice = spark.createDataFrame(
        [("g", "t", 0, "a", "b")],
        "group string, topic string, partition int, member string, Member string",
    )
    with pytest.raises(BadTable, match="the rows have several columns `member`; rename or drop"):
        from_rows(twice)
    assert ddl_of(row_schema()).startswith("group string,\ntopic string,\npartition int,\n")


ONE_TASK = "group string, topic string, partition long, member string, standby boolean, lag long, "
ONE_TASK += "stateful boolean, end_offset long, weight double, subtopology int"


def table(spark, *rows):
    names = [field.split()[0] for field in ONE_TASK.split(", ")]
    empty = dict.fromkeys(names) | {"subtopology": 0, "stateful": True}
    head = ("group", "topic", "partition", "member")
    filled = [empty | dict(zip(head, row[:4], strict=True)) | row[4] for row in rows]
    return spark.createDataFrame([tuple(row[name] for name in names) for row in filled], ONE_TASK)


def test_values_of_a_task_add_up_whichever_rows_give_them_and_never_overflow(spark):
    half, copy = 2**62, {"standby": True}
    rows = table(
        spark,
        ("split", "t1", 0, "A", {"end_offset": 10, "weight": 5.0}),
        ("split", "t2", 0, "A", {}),
        ("split", "t1", 0, "B", copy),
        ("split", "t2", 0, "B", copy | {"end_offset": 20, "weight": 7.0}),
        ("part", "t1", 0, "A", {"end_offset": 10}),
        ("part", "t2", 0, "A", {}),
        ("two", "t", 0, "A", {}),
        ("two", "t", 0, "B", {"subtopology": 1}),
        *[("ends", f"t{n}", 0, "A", {"end_offset": half}) for n in range(4)],
        *[("lags", f"t{n}", 0, "B", copy | {"lag": half}) for n in range(4)],
        ("last", "t", 2**31 - 1, "A", {}),
        ("beyond", "t", 2**63 - 1, "A", {}),
    )
    whole = "; correct them"
    expected = {
        "two": ("subtopology", "0 and 1", "rows of topic t have different values; give one"),
        "beyond": ("tasks.partition", str(2**63 - 1), "numbers end at 2147483647"),
    }
    for column, group in (("end_offset", "ends"), ("lag", "lags")):
        reason = f"the values of task 0_0 add up to more than {2**63 - 2}{whole}"
        expected[group] = (column, str(4 * half), reason)
    for mode in sample(("false", "true"), every=2, reason="ANSI mode, 6 s of Spark"):
        spark.conf.set("spark.sql.ansi.enabled", mode)
        try:
            groups = from_rows(rows)
            found = {row.name: row.tasks for row in groups.collect()}
            placed = place(groups, keep=["topics"], on_error="reject").localCheckpoint()
            out = to_rows(placed).collect()
        finally:
            spark.conf.unset("spark.sql.ansi.enabled")
        assert (found["split"][0].end_offset_sum, found["split"][0].weight) == (30, 12.0)
        assert found["part"][0].end_offset_sum is None
        rejects = {r.name: tuple(r.reject) for r in placed.where("reject is not null").collect()}
        assert rejects == expected
        [last] = [row for row in out if row.group == "last"]
        assert (last.topic, last.partition) == ("t", 2**31 - 1)


def test_topics_come_back_with_the_partitions_that_the_rows_have(spark):
    given = [("g", "t1", n, "a", {}) for n in (5, 6)] + [("g", "t2", n, "a", {}) for n in (0, 1, 3)]
    # A name that `place` could use for a column to keep.
    groups = from_rows(table(spark, *given)).selectExpr("*", "1 as _KEPT_0")
    found = to_rows(place(groups, keep=["topics"])).collect()
    assert sorted((r.topic, r.partition) for r in found) == [row[1:3] for row in given]
