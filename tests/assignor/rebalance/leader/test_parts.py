"""Topology change, finalized levels, the routing view: a leader without one does the rest."""

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from assignor import GroupMember, LeaderKnowledge, assign_group
from assignor.rebalance.leader import whole
from assignor.rebalance.leader.parts.absent import LeaderParts
from encoding import TaskId
from probing.features import ASSIGNMENT_PROTOCOL, UNKNOWN_LEVELS, FinalizedLevels
from tests.assignor.rebalance.forms.mixed_group import MixedGroup, counting
from tests.assignor.rebalance.groups import Group, start
from tests.assignor.rebalance.leader.hostile import ALL, TASKS, settings, written

ABSENT = LeaderParts()
PARTS = ("topologies", "levels", "views")
LEVELS = FinalizedLevels(levels={ASSIGNMENT_PROTOCOL: 11}, epoch=3)
FOLDER = Path(whole.__file__).parent
PACKAGES_OF_PARTS = (
    "assignor.rebalance.forms",
    "assignor.rebalance.level_reports",
    "assignor.rebalance.routing_view",
    "probing.features",
    "probing.persisted_formats",
    "probing.topologies",
)


@pytest.fixture(params=[*((part,) for part in PARTS), PARTS], ids="+".join)
def without(request, monkeypatch):
    """Names of the parts that the leader does not have."""
    complete = whole.parts_of

    def some(*arguments):
        absent = {part: getattr(ABSENT, part) for part in request.param}
        return replace(complete(*arguments), **absent)

    monkeypatch.setattr(whole, "parts_of", some)
    return request.param


def group_of(*names):
    group = Group()
    for name in names:
        group.join(name, endpoint=f"{name}:80")
    return group


def natives(group):
    return [answer.assignment.native for answer in group.last.answers.values()]


def test_tasks_are_placed_and_answers_have_what_the_other_parts_decide(without):
    group = group_of("a", "b")
    group.join("old", "3.9", endpoint="old:80")
    group.round("a", knowledge=LeaderKnowledge(levels=LEVELS))
    assert sorted(group.owners()) == TASKS
    assert group.last.decision.rule
    found = [native for native in natives(group) if native is not None]
    assert len(found) == 2
    assert {native.feature_epoch for native in found} == {-1 if "levels" in without else 3}
    assert {native.view_full is None for native in found} == {"views" in without}
    assert group.members["old"].routing.active, "Kafka's host maps are no part"


def test_versions_settle_and_stay(without):
    group = group_of("a", "b")
    assert group.settle("a") <= 3
    before = group.owners()
    group.round("b")
    assert group.owners() == before
    assert len(set(group.used_versions().values())) == 1


def test_a_task_waits_until_its_owner_has_revoked_it(without):
    owner = written(start(number=0), "a", owned=ALL)
    answer = assign_group(settings(), [owner, written(start(number=1), "b")], {"lines": 6})
    assert sum(map(len, answer.withheld.values())) == 3
    assert not answer.faults


def test_a_member_that_cannot_be_read_is_quarantined_and_harms_no_other(without):
    members = [written(start(), "a"), GroupMember(member_id="x", user_data=b"\0\0")]
    answer = assign_group(settings(), members, {"lines": 6})
    assert answer.quarantined.keys() == {"x"}
    assert sorted(answer.answers["a"].assignment.active_tasks) == TASKS


@pytest.mark.parametrize("without", [("topologies",), PARTS], indirect=True, ids="+".join)
@pytest.mark.usefixtures("without")
def test_another_topology_is_followed_only_by_the_part_that_knows_it():
    group = MixedGroup()
    group.start("a", counting())
    group.start("b", counting(2, sources=("lines", "other")))
    group.rebalance("a")
    given = {t for answer in group.last.answers.values() for t in answer.assignment.active_tasks}
    assert given == {TaskId(0, partition) for partition in range(4)}, "the leader's topology"


def test_levels_of_members_do_not_count_without_the_part(without):
    group = group_of("a", "b")
    group.members["b"].state = replace(group.members["b"].state, levels=LEVELS)
    group.round("a")
    levels = {native.feature_epoch for native in natives(group)}
    assert levels == {UNKNOWN_LEVELS.epoch if "levels" in without else 3}


def stages():
    """The modules of the leader that know no part: all but the parts themselves and `whole`."""
    return [path for path in FOLDER.glob("*.py") if path.stem not in {"__init__", "whole"}] + [
        FOLDER / "parts" / "__init__.py",
        FOLDER / "parts" / "absent.py",
    ]


@pytest.mark.parametrize("path", stages(), ids=lambda path: path.stem)
def test_no_stage_imports_anything_of_a_part(path):
    view = ast.parse(Path("encoding/view/__init__.py").read_text(encoding="utf-8"))
    views = {
        alias.name for node in view.body if isinstance(node, ast.ImportFrom) for alias in node.names
    } - {"ViewForm"}  # what the record budget calls its steps
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert not node.module.startswith(PACKAGES_OF_PARTS)
            if node.module.startswith("encoding"):
                assert not views & {alias.name for alias in node.names}


@pytest.mark.usefixtures("clock")
def test_a_leader_without_its_parts_loads_none_of_them():
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, assignor.rebalance.leader.assign; print(*sys.modules, sep='\\n')",
        ],
        check=True,
        capture_output=True,
        encoding="utf-8",
    ).stdout.split()
    of_others = (
        *PACKAGES_OF_PARTS,
        "assignor.rebalance.member",
        "assignor.topology.subtopologies",
        "encoding.inspection",
        "encoding.view",
        "probing.member",
        "probing.upgrades",
    )
    assert [name for name in loaded if name.startswith(of_others)] == []
