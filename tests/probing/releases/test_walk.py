"""The steps of docs/extending.md for an invented release, walked in a copy of the sources.

Every missing step is a failing test that names what to do, and few files are changed by hand.
"""

import json
import re
import subprocess
import sys

import pytest

from probing import find_release
from probing.versions import HELD_BACK_VERSION, START_VERSION
from system_tests.matrix import all_pairs
from tests.planted.runs import Copy
from tests.probing.releases.guide import NEWEST, PINS, ROOT, SERIES, STEPS, STORED, VERDICTS
from tests.versions import LATER

pytestmark = [pytest.mark.timeout(1_800), pytest.mark.usefixtures("clock")]

RELEASES = "probing/releases/releases.toml"
LEVELS = "probing/features/kafka_levels.toml"
CHANGES = "system_tests/plan/changes/changes.toml"
SCHEMA = "encoding/kafka/schema.py"
VALUES = "encoding/kafka/values.py"
CHANGELOG = "CHANGELOG.md"
PATCHES = "tests/encoding/golden/patches.json"
FILES_BY_HAND = 6
_STUB_VECTORS = f"""
from encoding import KAFKA_VERSIONS, DecodeError
from probing import NEWEST_KAFKA
from tests.encoding import store_golden as store
from tests.encoding.golden_files import DECODE, ENCODE, FROM_FIELDS, TO_FIELDS

class Own:
    def construct(self, kind, version, latest, fields):
        return ENCODE[kind](FROM_FIELDS[kind](fields))
    def read(self, kind, data):
        try:
            return TO_FIELDS[kind](DECODE[kind](data, KAFKA_VERSIONS))
        except DecodeError as error:
            raise ValueError(str(error)) from error

store.LATEST[NEWEST_KAFKA] = {LATER}
store._write_json("releases", store.LATEST)
for kind in DECODE:
    own = store.vectors_of(Own(), kind, NEWEST_KAFKA)
    store._write(kind, [*store.lines(kind), *own])
store._write("edge", [store._edge(Own(), line, NEWEST_KAFKA) for line in store.lines("edge")])
"""
_STUB_VERDICTS = """
from tests.probing.releases.guide import VERDICTS, all_pairs, kip268_pairs
from system_tests.matrix import Verdict, read_verdicts, to_text
pairs = {*all_pairs(), *kip268_pairs()}
stored = read_verdicts(VERDICTS)
VERDICTS.write_text(to_text(stored.get(pair) or Verdict(*pair, True, "") for pair in pairs))
"""
_STUB_FINDINGS = """
import json
from tests.system_tests.explore.table import STORED, same_ways
stored = json.loads(STORED.read_text())
stored["same"] = [[[" -> ".join(way) for way in same] for same in same_ways(static=static)]
                  for static in (False, True)]
STORED.write_text(json.dumps(stored))
"""
_STARTS = """
from probing import HELD_BACK, find_release
from probing.features import ASSIGNMENT_PROTOCOL
from probing.member import start_member
native = find_release("native")
print(start_member(native).used_version, native.latest_version,
      HELD_BACK.level_of(ASSIGNMENT_PROTOCOL))
"""


class Walk:
    """A copy of the sources in which a release is added, step by step."""

    def __init__(self, folder):
        Copy(folder)
        # Tests read the list of files from git.
        subprocess.run(["git", "init", "--quiet", folder], check=True)
        self.folder = folder
        major, minor = map(int, NEWEST.series.split("."))
        self.series, self.following = (f"{major}.{minor + more}" for more in (1, 2))
        self.release = f"{self.series}.0"
        self.by_hand = set()
        self.generated = set()

    def edit(self, name, old, new, *, after=""):
        """Change a file by hand: `new` goes before the first `old` that follows `after`."""
        path = self.folder / name
        text = path.read_text(encoding="utf-8")
        place = text.index(old, text.index(after))
        path.write_text(text[:place] + new + text[place:], encoding="utf-8")
        self.by_hand.add(name)

    def announce_later(self):
        """Change rows that were announced of the release, and did not come, to the next one."""
        path = self.folder / CHANGES
        before, later = (
            f'[[announced]]\nrelease = "{series}"' for series in (self.series, self.following)
        )
        path.write_text(path.read_text(encoding="utf-8").replace(before, later), encoding="utf-8")
        self.by_hand.add(CHANGES)

    def run(self, *words):
        return subprocess.run(
            [sys.executable, *words], cwd=self.folder, capture_output=True, text=True, check=False
        )

    def missing(self):
        done = self.run("-m", "tests.probing.releases.guide", "--json")
        missing = json.loads(done.stdout)
        assert done.returncode == bool(missing), done.stderr
        return missing

    def failing(self):
        """The steps whose test fails, and the names of other tests of the guide that fail."""
        test = "tests/probing/releases/test_guide.py"
        done = self.run("-m", "pytest", "-q", "-n", "0", "-rf", "-p", "no:cacheprovider", test)
        assert done.returncode in (0, 1), done.stdout
        names = re.findall(r"^(?:FAILED|ERROR) .*?::(\w+)(?:\[(\w+)\])?", done.stdout, re.MULTILINE)
        return {step if test.endswith("_is_missing") else test for test, step in names}

    def check_others(self):
        """All that knows the release's rows passes, and no result of a planted fault changes."""
        test = "test_stored_results_are_of_these_faults_and_all_were_noticed"
        test = f"tests/planted/test_noticed.py::{test}"
        done = self.run("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", test, *OTHERS)
        assert done.returncode == 0, done.stdout

    def generate(self, step, name):
        """Do a step whose result a command writes; the jars of an invented release do not exist."""
        path = self.folder / name
        if step == "layouts":
            assert not self.run("-m", "tests.encoding.kafka.lock_layouts").returncode
        elif name in STUBS:
            done = self.run("-c", STUBS[name])
            assert not done.returncode, done.stderr
        elif name == PATCHES:
            rows = json.loads(path.read_text(encoding="utf-8"))
            counts = {"vectors": 880, "edges": 383, "sha256": "0" * 64}
            series, _, number = self.release.rpartition(".")
            last = f"{series}.{int(number) - 1}"
            same = [row for row in rows.values() if row["same_as"] == last]
            rows[self.release] = same[0] if same else {"same_as": last, **counts}
            path.write_text(json.dumps(rows), encoding="utf-8")
        else:
            with path.open("a", encoding="utf-8") as file:
                file.write(f"{'0' * 64}  kafka-streams-{self.release}.jar\n")
        self.generated.add(name)


STUBS = {
    "tests/encoding/golden/releases.json": _STUB_VECTORS,
    str(VERDICTS.relative_to(ROOT)): _STUB_VERDICTS,
    str(STORED.relative_to(ROOT)): _STUB_FINDINGS,
}
OTHERS = (
    "tests/probing/releases/test_guide.py",
    "tests/probing/releases/test_lookup.py",
    "tests/probing/releases/test_rows.py",
    "tests/encoding/kafka/test_edge.py",
    "tests/encoding/kafka/test_golden.py",
    "tests/encoding/kafka/test_layouts.py",
)


@pytest.fixture
def walk(tmp_path):
    return Walk(tmp_path)


READ_ENDS = "# The first release that writes"


def read_row(name):
    """What a person notes of a release that changes nothing else."""
    keys = 'date = "2030-01-01"\nnothing = true\nsource = "Streams guide, upgrade notes"\n\n'
    return f'[[read]]\nrelease = "{name}"\n{keys}'


def rows_by_step(series):
    """step -> the file and the place at which a person adds rows, and the rows."""
    name, levels = f"{series}.0", (ROOT / LEVELS).read_text(encoding="utf-8")
    last = levels.partition("\n\n# Levels of metadata")[0].rpartition("[[release]]")[2]
    copied = f"[[release]]{last}\n\n".replace(f'"{NEWEST.series}"', f'"{series}"')
    since = f'since = "{name}"'
    return {
        "versions": (
            *(RELEASES, "# Native versions."),
            f'[[version]]\n{since}\nversion = {LATER}\nwhat = "invented"\nsource = "invented"\n\n',
        ),
        "start_version": (RELEASES, "\n# Native versions.", f"native_start = {START_VERSION}\n"),
        "attributes": (VALUES, "    native: NativeSubscription", "    invented: int = 0\n"),
        "upgrade_from": (
            *(RELEASES, "# Values that"),
            (
                f'[[upgrade_from]]\n{since}\nfirst = "2.4"\nlast = "{NEWEST.series}"\n'
                'source = "invented"\n\n'
            ),
        ),
        "feature_levels": (LEVELS, "# Levels of metadata", copied),
        "streams_groups": (CHANGES, "# What is announced", f"[[brokers]]\n{since}\n\n"),
        "changes": (RELEASES, READ_ENDS, read_row(name)),
        "changelog": (CHANGELOG, "### Wire\n", f"### Wire\n\n- {name} writes version {LATER}.\n\n"),
    }


GENERATED = {
    "layouts": "tests/encoding/kafka/released_layouts.json",
    "golden_vectors": "tests/encoding/golden/releases.json",
    "checksums": str(PINS.relative_to(ROOT)),
    "verdicts": str(VERDICTS.relative_to(ROOT)),
    "findings": str(STORED.relative_to(ROOT)),
}


@pytest.mark.nightly("a minute of pytest in a copy; every run walks a patch release")
def test_a_release_with_a_new_version_is_added_by_steps_that_fail_until_they_are_done(walk):
    rows = rows_by_step(walk.series)
    names = [step.__name__ for step in STEPS]
    assert sorted(names) == sorted([*rows, *GENERATED])
    # What a person knows of the release: its number, and the field that its version adds.
    walk.edit(RELEASES, "\n# What was read of", f'"{walk.series}" = [0]\n')
    walk.edit(SCHEMA, ')\n"""The versions with', f", {LATER}")
    walk.edit(
        SCHEMA,
        ')\n"""Rows of the subscription',
        f'    Field("invented", "int32", {LATER}, meaning="."),\n',
    )
    open_steps = set(walk.missing())
    assert open_steps == set(names) - {
        "start_version"
    }  # which is decided when the version is known
    assert walk.failing() == open_steps
    for step in names:
        assert step in walk.missing() or step == "start_version"
        if step in rows:
            walk.edit(*rows[step])
            if step in walk.missing() and step == "changes":
                walk.announce_later()
        else:
            walk.generate(step, GENERATED[step])
        assert step not in walk.missing()
    assert walk.failing() == set()
    assert walk.by_hand == {RELEASES, SCHEMA, VALUES, LEVELS, CHANGES, CHANGELOG}
    assert len(walk.by_hand) <= FILES_BY_HAND
    assert walk.generated == set(GENERATED.values())
    walk.check_others()
    starts = walk.run("-c", _STARTS).stdout.split()
    assert starts == [str(START_VERSION), str(LATER), str(HELD_BACK_VERSION)]


PATCH_STEPS = {
    "golden_vectors": PATCHES,
    **{step: GENERATED[step] for step in ("checksums", "verdicts", "findings")},
}


# The matrix has the newest release, and the last of those that behave alike.
IN_MATRIX = {find_release(name).series for pair in all_pairs() for name in pair}


@pytest.mark.nightly("half a minute; every run walks one series", but=("series before",))
@pytest.mark.parametrize("series", SERIES[-1:-3:-1], ids=["newest series", "series before"])
def test_a_patch_release_needs_its_number_and_steps_that_fail_until_they_are_done(walk, series):
    steps = PATCH_STEPS if series in IN_MATRIX else ("golden_vectors", "checksums")
    number = find_release(series).order[-1] + 1
    walk.release = f"{series}.{number}"
    row = f'"{series}" = [{", ".join(map(str, range(number)))}'
    walk.edit(RELEASES, "]\n", f", {number}", after=row)
    open_steps = {*steps, "changes", "changelog"}
    assert set(walk.missing()) == walk.failing() == open_steps
    for step in steps:
        walk.generate(step, PATCH_STEPS[step])
        open_steps.remove(step)
        assert set(walk.missing()) == open_steps
    walk.edit(RELEASES, READ_ENDS, read_row(walk.release))
    assert set(walk.missing()) == {"changelog"}
    walk.edit(CHANGELOG, "### Added\n", f"### Added\n\n- {walk.release} is known.\n\n")
    assert not walk.missing()
    assert walk.by_hand == {RELEASES, CHANGELOG}
    walk.check_others()
