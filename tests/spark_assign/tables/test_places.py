"""Rows and lines are numbered as in their files, for any split of the files."""

import pytest
from pyspark.sql import functions as f

from spark_assign.tables.places import with_lines, with_places, with_rows
from spark_assign.tables.rejects import POSITION_TYPE


@pytest.fixture
def small_blocks(spark):
    """Make Spark read files in blocks of a few lines."""
    keys = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
    before = {key: spark.conf.get(key) for key in keys}
    spark.conf.set(keys[0], "200b")
    spark.conf.set(keys[1], "1b")
    yield
    for key, value in before.items():
        spark.conf.set(key, value)


def test_lines_are_those_of_their_files(spark, small_blocks, tmp_path):
    names = ("a.jsonl", "b c.jsonl")
    for name, count in zip(names, (90, 7), strict=True):
        text = "\n".join(f"{name} {n} {'x' * (n % 31)}" for n in range(1, count + 1))
        (tmp_path / name).write_text(text, encoding="utf-8")
    lines = with_lines(spark.read.text(str(tmp_path)))
    assert lines.rdd.getNumPartitions() > 3
    found = with_places(lines.repartition(2), lines, is_text=True).collect()
    assert len(found) == 97
    for row in found:
        name, number, _ = row.value.rsplit(" ", 2)
        assert row.place.replace("%20", " ") == f"{tmp_path}/{name}, line {number}"


def test_rows_are_those_of_their_files(spark, tmp_path):
    for part in ("a", "b"):
        rows = spark.range(5).selectExpr("id", f"'{part}' as part").coalesce(1)
        rows.write.parquet(str(tmp_path / part))
    table = with_rows(spark.read.parquet(str(tmp_path / "*")))
    found = with_places(table, table, is_text=False).collect()
    assert {row.place.rpartition(", ")[2] for row in found} == {f"row {n}" for n in range(1, 6)}
    assert all(row.place.startswith(f"{tmp_path}/{row.part}/part-") for row in found)
    assert all(row.place.endswith(f", row {row.id + 1}") for row in found)


def test_rows_of_other_tables_have_no_place(spark):
    frame = spark.range(2).withColumn("position", f.lit(None).cast(POSITION_TYPE))
    rows = with_places(frame, spark.range(2), is_text=False).collect()
    assert [row.place for row in rows] == [None, None]
