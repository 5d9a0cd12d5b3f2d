"""The notebook page: its Python blocks print what it shows, and change no setting."""

import io
from contextlib import redirect_stdout

from tests.docs.pages import ROOT, blocks, prints, python_blocks

PAGE = ROOT / "docs" / "notebook.md"


def test_blocks_print_what_the_page_shows_and_leave_the_session_as_it_is(
    spark, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    before, names, wrong = dict(spark.conf.getAll), {"__name__": "page"}, []
    for block, shown in python_blocks(blocks(PAGE)):
        output = io.StringIO()
        with redirect_stdout(output):
            exec(compile("\n" * (block.line - 1) + block.body, PAGE.name, "exec"), names)  # noqa: S102 a page of ours
        wrong.append(prints(block, shown, output.getvalue()))
    assert "\n".join(filter(None, wrong)) == ""
    assert dict(spark.conf.getAll) == before
