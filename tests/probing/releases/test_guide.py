"""The newest release of Kafka is complete; each open step of docs/extending.md is a failure."""

import json

import pytest

from system_tests.errors import EnvironmentFailureError
from tests.encoding import store_golden
from tests.probing.releases import guide
from tests.probing.releases.guide import ROOT, STEPS

PAGE = ROOT / "docs/extending.md"


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_nothing_of_the_newest_release_is_missing(step):
    assert step() == "", f"{step.__name__}: {step()}"


def test_the_page_names_every_step():
    text = PAGE.read_text(encoding="utf-8")
    section = text.partition("## A release of Kafka\n")[2].partition("\n## ")[0]
    assert section
    assert [step.__name__ for step in STEPS if f"`{step.__name__}`" not in section] == []


def test_the_guide_prints_a_line_for_each_missing_step_and_an_object_on_request(
    capsys, monkeypatch
):
    def done():
        return ""

    def lacking():
        return "do it"

    monkeypatch.setattr(guide, "STEPS", (done,))
    assert guide.main([]) == 0
    assert capsys.readouterr().out == f"nothing of {guide.NEWEST.name} is missing\n"
    monkeypatch.setattr(guide, "STEPS", (done, lacking))
    assert guide.main([]) == guide.main(["--json"]) == 1
    text, document = capsys.readouterr().out.splitlines()
    assert text == "lacking: do it"
    assert json.loads(document) == {"lacking": "do it"}


def test_a_release_that_was_not_read_is_a_missing_step(monkeypatch):
    monkeypatch.setattr(guide, "READ", {})
    assert guide.changes().startswith(f"[[read]] {guide.CURRENT[0]} in probing/releases/")


READ_ROWS = [(name, row) for name, row in guide.READ.items() if name != guide.TRUNK]


@pytest.mark.parametrize(("name", "row"), READ_ROWS, ids=dict(READ_ROWS))
def test_a_release_is_read_with_nothing_if_no_change_has_it_and_only_then(name, row):
    assert guide.problem_of_read(name, row) == ""
    wrong = {**row, "nothing": not row.get("nothing", False)}
    assert "only then" in guide.problem_of_read(name, wrong)


@pytest.mark.parametrize("page", guide.PAGES)
def test_the_first_release_of_a_series_is_read_with_each_page_of_kafka(page):
    name, row = next(pair for pair in READ_ROWS if pair[0].endswith(".0"))
    lacking = {**row, "source": row["source"].replace(page, "")}
    assert f"source names Kafka's {page}" in guide.problem_of_read(name, lacking)


def test_vectors_of_a_release_without_jars_end_with_a_sentence(monkeypatch):
    def refuse(release):
        raise EnvironmentFailureError(f"the jars of {release} are not available")

    monkeypatch.setattr(store_golden, "streams_jars", refuse)
    for arguments in (["--patch", "4.4.0"], ["4.4.0"]):
        with pytest.raises(SystemExit, match=r"^store_golden: the jars of 4.4.0 are not"):
            store_golden.main(arguments)
    with pytest.raises(SystemExit, match=r"^store_golden: release '9.9' is unknown"):
        store_golden.main(["9.9"])
