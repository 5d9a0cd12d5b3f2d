"""Damage of any value of a file of facts is an error with file, row and key, or does no harm."""

import copy
import importlib
import re
import runpy
import tomllib
from contextlib import suppress
from types import SimpleNamespace

import pytest

import probing.releases
from probing import tables
from probing.tables import TableError
from tests.probing.fact_files import FILES, ROOT

OTHERS = {"probing/releases/experiments.toml", "system_tests/support/claims/claims.toml"}
READERS = {name: reader for name, reader in FILES.items() if name not in OTHERS}
FACTS = {name: tomllib.loads((ROOT / name).read_text(encoding="utf-8")) for name in READERS}
for reader in FILES.values():  # with the facts: what loads with damaged ones stays in sys.modules
    importlib.import_module(reader.removesuffix(".py").replace("/", "."))
WRONG = (None, [], -7, " ", "2.7.x", [["4.1.0"]])


@pytest.fixture
def load(monkeypatch):
    """Load the modules that read a file, with other tables."""
    texts = {(ROOT / name).read_text(encoding="utf-8"): name for name in FACTS}

    def load(name, damaged):
        facts = {**FACTS, name: damaged}
        fake = SimpleNamespace(loads=lambda text: facts[texts[text]])
        monkeypatch.setattr(tables, "tomllib", fake)
        rows = runpy.run_path(str(ROOT / READERS[name]))
        if name.endswith("releases.toml"):
            monkeypatch.setattr(probing.releases, "rows", SimpleNamespace(**rows))
            runpy.run_path(str(ROOT / "probing/releases/lookup.py"))

    return load


def places(name):
    """Yield a path to each key of the first and of the last row of each table."""
    for table, rows in FACTS[name].items():
        if isinstance(rows, dict):
            yield from ((table, key) for key in [*rows][:1] + [*rows][-1:])
            continue
        yield (table,)
        for number in {0, len(rows) - 1}:
            yield (table, number)
            yield from ((table, number, key) for key in rows[number])


@pytest.mark.parametrize("name", READERS)
def test_any_value_of_any_key_may_be_damaged(load, name):
    for path in places(name):
        for wrong in WRONG:
            damaged = damaged_at(FACTS[name], path, wrong)
            with suppress(TableError):
                load(name, damaged)


def damaged_at(value, path, wrong):
    """A copy of a value with another one at a path; None: nothing is there."""
    if not path:
        return wrong
    key, *rest = path
    copied = copy.copy(value)
    copied[key] = damaged_at(value[key], rest, wrong)
    if copied[key] is None:
        del copied[key]
    return copied


def first(file, table, keys):
    """The first row of a table with these values, in a copy of the file's tables."""
    facts = copy.deepcopy(FACTS[file])
    rows = [row for row in facts[table] if keys.items() <= row.items()]
    return facts, rows[0]


RELEASES, LEVELS, CHANGES, _ = READERS
FIRST = FACTS[CHANGES]["announced"][0]["release"]
CONTRADICTIONS = [
    (RELEASES, "leader", {"since": "2.7.0"}, {"since": "2.7.x"}, "leader, row 12 (since 2.7.x), s"),
    (RELEASES, "upgrade_from", {"since": "4.4.0"}, {"last": "4.9"}, "'4.9' is not a series"),
    (RELEASES, "upgrade_from", {"since": "4.4.0"}, {"first": None}, "'first' is missing, which"),
    (RELEASES, "format", {"changed_in": "3.5.0"}, {"honoured_since": None}, "'honoured_since' is"),
    (RELEASES, "issue", {"id": "KAFKA-5037"}, {"fixed_in": []}, "[] has to have 1 or more values"),
    (RELEASES, "issue", {"id": "KAFKA-5037"}, {"since": "2.1.0"}, "fixed_in '2.1.0' has to be ab"),
    (RELEASES, "upgrade_from", {"since": "4.4.0"}, {"first": "4.4"}, "last '4.3' has to be at or"),
    (RELEASES, "upgrade_from", {"since": "4.4.0"}, {"last": "4.4"}, "'4.4.0' has to be above last"),
    (RELEASES, "member", {"since": "2.3.1"}, {"only_in": "2.2"}, "is not the series of 2.3.1"),
    (RELEASES, "format", {"use": "fk-join"}, {"exists_since": "3.3.0"}, "changed_in '3.3.0' has"),
    (RELEASES, "format", {"use": "ktable"}, {"last_old_series": "3.5"}, "changed_in '3.5.0' has"),
    (RELEASES, "crashing_value", {}, {"until_last": "3.4.1"}, "until_last '3.4.1' has to be at"),
    (RELEASES, "issue", {"id": "KAFKA-5037"}, {"id": "KAFKA-6054"}, "repeats id of row 1"),
    (RELEASES, "issue", {"id": "KAFKA-5037"}, {"source": " "}, "of type str, and not blank"),
    (RELEASES, "leader", {"since": "2.7.0"}, {"since": "2.6.0"}, "repeats since of row 11"),
    (
        RELEASES,
        "upgrade_from",
        {"since": "4.4.0"},
        {"since": "4.2.0", "last": "4.1"},
        "repeats since",
    ),
    (RELEASES, "upgrade_from", {"since": "4.4.0"}, {"since": "3.0.0", "last": "2.8"}, "not above"),
    (RELEASES, "member", {"since": "0.10.0.0"}, {"since": "0.10.0.1"}, "start at 0.10.0.0"),
    (CHANGES, "change", {"since": "3.2.0"}, {"also": [["4.1.0"]]}, "has to have 2 values"),
    (CHANGES, "change", {"since": "4.1.0"}, {"until": "4.1.0"}, "on ends before it begins, with"),
    (CHANGES, "change", {"since": "3.2.0"}, {"also": [["3.1.1", ""]]}, "'3.2.0' on begins before"),
    (CHANGES, "change", {"since": "3.2.0"}, {"also": [["", "3.1.1"]]}, "'' on begins before the"),
    (CHANGES, "change", {"since": "3.2.0"}, {"with_brokers": ["2.8.0", "2.1.0"]}, "'2.1.0'"),
    (CHANGES, "change", {"since": "3.2.0"}, {"uses": ["eos"]}, "uses and unless have 'eos'"),
    (CHANGES, "change", {"from_below": "2.4.0"}, {"from_below": "4.1.0"}, "since '4.0.0' has to"),
    (CHANGES, "announced", {}, {"release": "soon"}, "'soon' is not written as a release"),
    (CHANGES, "announced", {}, {"source": "\t"}, f"announced, row 1 (release {FIRST}), source: "),
    (CHANGES, "brokers", {"since": "4.4.0"}, {"since": "4.2.2"}, "is not above that of the row"),
    (CHANGES, "brokers", {"since": "4.4.0"}, {"assignor": "stick"}, "has to be one of sticky"),
    (LEVELS, "release", {"series": "4.4"}, {"metadata": [7]}, "has to have 2 values"),
    (LEVELS, "release", {"series": "4.4"}, {"metadata": [7, 34]}, "[7, 34] are not the lowest"),
    (LEVELS, "release", {"series": "4.4"}, {"others": {"share.version": 5}}, "share.version 5 is"),
    (
        *(LEVELS, "feature", {"name": "share.version"}),
        {"levels": [{"release": name, "changed": "."} for name in ("4.1", "9.4")]},
        "'9.4' is not of a series of [[release]]",
    ),
]


@pytest.mark.parametrize("case", CONTRADICTIONS, ids=lambda case: f"{case[1]} {case[4]}")
def test_a_row_that_contradicts_another_is_named(load, case):
    name, table, keys, change, message = case
    facts, row = first(name, table, keys)
    row.update(change)
    for key in [key for key, value in change.items() if value is None]:
        del row[key]
    with pytest.raises(TableError, match=re.escape(message)) as error:
        load(name, facts)
    assert str(error.value).startswith(f"{name}, {table}")
    assert re.search(r"row \d+", str(error.value))


@pytest.mark.parametrize(
    ("series", "patches", "message"),
    [("4.x", [0], "'4.x' is not a series"), ("4.4", [], "4.4: [] has to be every patch from 0")],
)
def test_patches_that_no_release_can_have_are_named(load, series, patches, message):
    facts = copy.deepcopy(FACTS[RELEASES])
    facts["patches"][series] = patches
    with pytest.raises(TableError, match=re.escape(f"{RELEASES}, patches: {message}")):
        load(RELEASES, facts)
