"""Streams groups of tests: those of the stored problems, and random ones member by member."""

import base64
import gzip
import json
import random
import uuid
from dataclasses import dataclass, replace
from pathlib import Path

from assignor.placement.streams_groups import MemberSpec, MemberTasks, assign_members, member_specs
from assignor.problems import read_problem
from encoding import TaskId
from probing import find_release

FOLDER = Path(__file__).parent / "kafka_results"
PROBLEM_FILES = (
    Path(__file__).parents[1] / "jvm/kafka_results/problems.jsonl.gz",
    Path(__file__).parents[2] / "problems/open_sample.jsonl.gz",
)
RELEASES = ("4.3.1", "4.4.0")
"""Releases whose class was asked: the last one of each behaviour."""
OFFSETS_SINCE = (4, 4, 0)
ANSWERS = "project_answers.jsonl.gz"
RANDOM = "random_groups.jsonl.gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A streams group before an assignment; `arguments` are those of `assign_members`."""

    name: str
    members: list[MemberSpec]
    subtopologies: dict[int, tuple[int, bool]]
    standbys: int

    def arguments(self):
        tasks = {
            has_state: [
                TaskId(number, partition)
                for number, (count, is_stateful) in sorted(self.subtopologies.items())
                for partition in range(count)
                if is_stateful is has_state
            ]
            for has_state in (True, False)
        }
        return {
            "members": self.members,
            "stateful": tasks[True],
            "stateless": tasks[False],
            "num_standby_replicas": self.standbys,
        }

    def to_json(self):
        return {
            "name": self.name,
            "members": [
                {
                    "member": member.member_id,
                    "process": member.process_id,
                    "active": names(member.active),
                    "standby": names(member.standby),
                    **({"offsets": offsets(member)} if member.offsets else {}),
                }
                for member in self.members
            ],
            "subtopologies": self.subtopologies,
            "standbys": self.standbys,
        }


def question_of(data):
    """The question of a stored problem."""
    state = read_problem(data).state
    found = {}
    for task, has_state in zip(state.tasks, state.stateful.tolist(), strict=True):
        count, _ = found.get(task.subtopology, (0, False))
        found[task.subtopology] = (count + 1, has_state)
    return Question(
        name=data["name"],
        members=member_specs(state),
        subtopologies=found,
        standbys=state.config.num_standby_replicas,
    )


def question_from_json(data):
    return Question(
        name=data["name"],
        members=[
            MemberSpec(
                member_id=member["member"],
                process_id=member["process"],
                active=frozenset(map(TaskId.parse, member["active"])),
                standby=frozenset(map(TaskId.parse, member["standby"])),
                offsets={
                    TaskId.parse(task): row for task, row in member.get("offsets", {}).items()
                },
            )
            for member in data["members"]
        ],
        subtopologies={int(name): tuple(row) for name, row in data["subtopologies"].items()},
        standbys=data["standbys"],
    )


def answer_to_json(answer):
    """Members without tasks are left out."""
    return {
        member: [names(tasks.active), names(tasks.standby)]
        for member, tasks in answer.items()
        if tasks.active or tasks.standby
    }


def answer_from_json(data, members):
    rows = {member.member_id: data.get(member.member_id, ([], [])) for member in members}
    return {
        member: MemberTasks(*(set(map(TaskId.parse, tasks)) for tasks in row))
        for member, row in rows.items()
    }


def offsets(member):
    return {str(task): row for task, row in sorted(member.offsets.items())}


def model_answer(question, release):
    """What the model of a release answers."""
    since_4_4 = find_release(release).order >= OFFSETS_SINCE
    return assign_members(**question.arguments(), since_4_4=since_4_4)


def with_offsets(question, seed):
    """The question of members that report state on disk: of own tasks, and of others."""
    rng = random.Random(f"offsets-{seed}")  # noqa: S311 a test, no secret
    arguments = question.arguments()
    tasks = [*arguments["stateful"], *arguments["stateless"], TaskId(99, 0)]
    members = [
        replace(
            member,
            offsets={
                task: rng.choice((0, 1, 7, rng.randint(0, 10**6)))
                for task in sorted(
                    {*rng.sample(tasks, rng.randint(0, len(tasks) // 2)), *member.standby}
                )
                if task not in member.standby or rng.random() < 0.5
            },
        )
        for member in question.members
    ]
    return replace(question, name=f"{question.name}-offsets", members=members)


def names(tasks):
    return list(map(str, sorted(tasks)))


def json_lines(path):
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def project_questions():
    return [question_of(data) for path in PROBLEM_FILES for data in json_lines(path)]


def added_thread():
    """Active tasks make members full: the former standby on b has no room, the new thread has."""
    rows = (
        ("a1", "a", ("1_0", "1_1"), ()),
        ("a2", "a", (), ()),
        ("b1", "b", ("1_2",), ("0_0",)),
        ("d1", "d", ("0_0",), ()),
    )
    return Question(
        name="added-thread",
        members=[
            MemberSpec(
                member_id=member,
                process_id=process,
                active=frozenset(map(TaskId.parse, active)),
                standby=frozenset(map(TaskId.parse, standby)),
            )
            for member, process, active, standby in rows
        ],
        subtopologies={0: (1, True), 1: (4, False)},
        standbys=1,
    )


def random_question(seed):
    """A group with ids as Kafka draws them; before it nothing, an assignment, or disorder."""
    rng = random.Random(seed)  # noqa: S311 a test, no secret
    # With few stateful tasks, active tasks alone make members full.
    with_state = rng.choice((0.1, 0.6, 0.9))
    subtopologies = {
        number: (rng.randint(1, rng.choice((3, 12, 30))), rng.random() < with_state)
        for number in range(rng.choice((1, 2, 4, 12)))
    }
    processes = [str(uuid.UUID(int=rng.getrandbits(128))) for _ in range(rng.randint(1, 12))]
    ids = [
        (_member_id(rng), process) for process in processes for _ in range(rng.choice((1, 1, 2, 5)))
    ]
    standbys = rng.choice((0, 1, 1, 2, 3))
    empty = [MemberSpec(member_id=member, process_id=process) for member, process in ids]
    question = Question(
        name=f"random-{seed}", members=empty, subtopologies=subtopologies, standbys=standbys
    )
    before = {0: _nothing, 1: _assigned, 2: _disorder}[seed % 3]
    members = before(rng, question)
    rng.shuffle(members)
    return Question(
        name=question.name, members=members, subtopologies=subtopologies, standbys=standbys
    )


def _member_id(rng):
    raw = rng.getrandbits(128).to_bytes(16, "big")
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _nothing(rng, question):
    return list(question.members)


def _assigned(rng, question):
    """Assigned before; then some members left, and new ones came."""
    answer = assign_members(**question.arguments())
    left = []
    for spec in question.members:
        own = answer[spec.member_id]
        stays = rng.random() < 0.75
        left.append(
            MemberSpec(
                member_id=spec.member_id if stays else _member_id(rng),
                process_id=spec.process_id,
                active=frozenset(own.active) if stays else frozenset(),
                standby=frozenset(own.standby) if stays else frozenset(),
            )
        )
    return left[: max(1, len(left) - rng.randint(0, 2))]


def _disorder(rng, question):
    """Tasks that ran twice, with standbys beside their owners, and tasks that are gone."""
    arguments = question.arguments()
    tasks = [*arguments["stateful"], *arguments["stateless"], TaskId(99, 0)]
    return [
        MemberSpec(
            member_id=spec.member_id,
            process_id=spec.process_id,
            active=frozenset(rng.sample(tasks, rng.randint(0, len(tasks) // 3))),
            standby=frozenset(rng.sample(tasks, rng.randint(0, len(tasks) // 2))),
        )
        for spec in question.members
    ]
