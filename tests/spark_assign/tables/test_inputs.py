"""Files that cannot be read are errors, and not inputs with fewer rows."""

import pyarrow as pa
import pytest

from spark_assign.tables import BadTable
from spark_assign.tables.inputs import read_groups


@pytest.mark.parametrize("form", ["jsonl", "parquet", "auto"])
def test_a_link_to_no_file_is_named(spark, tmp_path, form):
    ending = "parquet" if form == "parquet" else "jsonl"
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / f"good.{ending}").write_text("{}\n", encoding="utf-8")
    (folder / f"lost.{ending}").symlink_to(tmp_path / "gone")
    for path in (folder, folder / f"lost.{ending}", folder / f"l*.{ending}"):
        with pytest.raises(BadTable, match=rf"lost.{ending} is a link to .*gone, which does not"):
            read_groups(spark, str(path), form=form)


def test_links_to_files_are_read(spark, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "real").write_text("{}\n", encoding="utf-8")
    (folder / "linked.jsonl").symlink_to(tmp_path / "real")
    (folder / "_lost.jsonl").symlink_to(tmp_path / "gone")
    assert read_groups(spark, str(folder)).frame.count() == 1


@pytest.mark.parametrize(("codec", "ending"), [("zstd", "zst"), ("gzip", "gz"), ("bz2", "bz2")])
def test_compressed_lines_are_read(spark, tmp_path, codec, ending):
    path = tmp_path / f"groups.jsonl.{ending}"
    with pa.CompressedOutputStream(pa.OSFile(str(path), "wb"), codec) as out:
        out.write(b'{"name": "a"}\n{"name": "b"}\n')
    rows = read_groups(spark, str(path)).frame.collect()
    assert [row.value for row in rows] == ['{"name": "a"}', '{"name": "b"}']


def test_formats_that_hadoop_reads_otherwise_are_refused(spark, tmp_path):
    path = tmp_path / "groups.jsonl.lz4"
    with pa.CompressedOutputStream(pa.OSFile(str(path), "wb"), "lz4") as out:
        out.write(b'{"name": "a"}\n')
    with pytest.raises(BadTable, match="reads only Hadoop's own"):
        read_groups(spark, str(path))
