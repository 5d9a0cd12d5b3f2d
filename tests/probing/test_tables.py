"""A mistake in a file of facts is an error at load, with file, row and key."""

import re
import runpy

import pytest

from probing import tables
from probing.tables import TableError, read_table
from tests.probing.fact_files import FILES, ROOT

ROW = {"since": ("2.0.0", "2.1.0"), "version": int, "uses?": [str], "other?": {"*": int}}
FORM = {"row": [ROW]}
GOOD = '[[row]]\nsince = "2.0.0"\nversion = 1\n[[row]]\nsince = "2.1.0"\nversion = 2\n'


@pytest.fixture
def read_text(monkeypatch):
    def read(text, form=FORM):
        monkeypatch.setattr(tables, "get_data", lambda *_: text.encode())
        return read_table("some.package", "facts.toml", form)

    return read


def test_a_file_that_has_its_form_is_returned_as_it_is(read_text):
    assert read_text(GOOD)["row"][1] == {"since": "2.1.0", "version": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "use = 1", "row, row 2 (version 2): unknown key 'use'; choose from other, since"),
        (GOOD.replace("version = 2", ""), "row, row 2 (since 2.1.0): key 'version' is missing"),
        (GOOD + "uses = 1", "row, row 2 (version 2), uses: 1 has to be a list"),
        (GOOD + "uses = [1]", "row, row 2 (version 2), uses, row 1: 1 has to be of type str"),
        (GOOD + 'other = { a = "b" }', "row 2 (version 2), other, a: 'b' has to be of type int"),
        (
            GOOD.replace("= 2", "= true"),
            "row 2 (version True), version: True has to be of type",
        ),
        (GOOD.replace("2.1.0", "2.10"), "since: '2.10' has to be one of 2.0.0, 2.1.0"),
        (GOOD.replace("[row]", "[rows]"), "facts.toml: unknown key 'rows'; choose from row"),
        ("", "facts.toml: key 'row' is missing"),
        (f"row = {'[' * 9_999}{']' * 9_999}", "facts.toml: values are nested too deeply"),
        ("[[row]]\nsince = oops", "facts.toml: Invalid value (at line 2, column 9)"),
    ],
)
def test_an_error_names_the_file_the_row_and_the_key(read_text, text, message):
    with pytest.raises(TableError) as caught:
        read_text(text)
    assert str(caught.value).startswith("some/package/facts.toml")
    assert message in str(caught.value)


@pytest.mark.parametrize(("name", "reader"), FILES.items())
def test_each_key_of_each_file_that_is_misspelled_is_an_error(monkeypatch, name, reader):
    real, text = tables.get_data, (ROOT / name).read_text(encoding="utf-8")
    keys = sorted(set(re.findall(r"^([a-z_]+) = ", text, re.MULTILINE)))
    assert keys
    for key in keys:
        wrong = re.sub(rf"^{key} = ", f"{key}s = ", text, count=1, flags=re.MULTILINE)

        def get_data(package, file, wrong=wrong):
            return wrong.encode() if name.endswith(f"/{file}") else real(package, file)

        monkeypatch.setattr(tables, "get_data", get_data)
        with pytest.raises(TableError, match=rf"{name}.*row \d+.*'{key}s'"):
            runpy.run_path(str(ROOT / reader))
