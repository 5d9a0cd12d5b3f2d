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
    guide.main([])
    assert capsys.readouterr().out == f"nothing of {guide.NEWEST.name} is missing\n"
    rows = {name: row for name, row in guide.READ.items() if name != guide.NEWEST.name}
    monkeypatch.setattr(guide, "READ", rows)
    guide.main([])
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"changes: [[read]] {guide.NEWEST.name} in probing/releases/")
    guide.main(["--json"])
    assert [*json.loads(capsys.readouterr().out)] == ["changes"]


def test_a_release_is_read_with_nothing_if_no_change_has_it(monkeypatch):
    last = guide.READ[guide.NEWEST.name]
    monkeypatch.setitem(guide.READ, guide.NEWEST.name, {**last, "nothing": True})
    assert "only then" in guide.changes()


def test_vectors_of_a_release_without_jars_end_with_a_sentence(monkeypatch):
    def refuse(release):
        raise EnvironmentFailureError(f"the jars of {release} are not available")

    monkeypatch.setattr(store_golden, "streams_jars", refuse)
    for arguments in (["--patch", "4.4.0"], ["4.4.0"]):
        with pytest.raises(SystemExit, match=r"^store_golden: the jars of 4.4.0 are not"):
            store_golden.main(arguments)
    with pytest.raises(SystemExit, match=r"^store_golden: release '9.9' is unknown"):
        store_golden.main(["9.9"])
