"""What a write-back does to a task, and why it does nothing: sans-IO."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from assignor.embedding.internal_topics import ExistingTopic, InternalTopic, topic_problem
from assignor.embedding.state_stores.access import InputState
from assignor.embedding.state_stores.copies import TaskCopy
from assignor.embedding.state_stores.records import Commit, count_write_backs
from assignor.embedding.write_back.copies import KeptTask, is_next_to
from encoding import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class InputMove:
    """The committed offset of an input partition.

    Attributes:
        partition: of the input.
        copy: up to where the copy has it; None: it has none of it.
        committed: before; None: none.
        to: after; None: it stays.
        why: where `to` is not that of the copy.
    """

    partition: TopicPartition
    copy: int | None
    committed: int | None
    to: int | None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBackPlan:
    """What is done for a task: nothing, if there are refusals."""

    refusals: tuple[str, ...]
    moves: tuple[InputMove, ...] = ()


def refuse_topics(
    kept: KeptTask, counts: Mapping[str, int], policies: Mapping[str, str] = MappingProxyType({})
) -> tuple[str, ...]:
    """Return what is wrong with the changelogs of a task.

    Args:
        kept: the task, without a problem.
        counts: topic -> number of partitions, for those that exist.
        policies: topic -> `cleanup.policy`, where it is known.
    """
    inputs = [counts[topic] for topic in kept.topics if topic in counts]
    wanted = max(inputs, default=0)
    lacking = sorted(kept.topics - counts.keys())
    if lacking:
        why = "does not exist; create it, or, to do without the copies, delete"
        return (f"input topic {lacking[0]} {why} {kept.directory}",)
    changelogs = [store.changelog for store in kept.stores.values()] + [*kept.missing.values()]
    wrong = tuple(
        f"changelog {topic} {_mend(counts.get(topic, 0), wanted)} cleanup.policy=compact, then run "
        "this command again; keep the state directory, it has the only copy"
        for topic, _ in sorted(changelogs)
        if counts.get(topic, 0) != wanted
    )
    return wrong or tuple(
        f"{problem}; then run this command again"
        for topic, _ in sorted(changelogs)
        if (problem := _policy_problem(topic, wanted, policies.get(topic, "")))
    )


def _policy_problem(topic: str, count: int, policy: str) -> str | None:
    """Return why a changelog would not keep what is written to it, and what to do."""
    changelog = InternalTopic(name=topic, partitions=count, configs={}, compacted=True)
    found = ExistingTopic(partitions=count, configs={"cleanup.policy": policy})
    return topic_problem(changelog, found)


def _mend(count: int, wanted: int) -> str:
    """Return what is wrong with a changelog with so many partitions, and what to do."""
    if not count:
        return f"does not exist: create it with {wanted} partitions and"
    wrong = f"has {count} partitions instead of {wanted}:"
    if count > wanted:
        return f"{wrong} delete this topic, and create it with {wanted} partitions and"
    return f"{wrong} add partitions to it, which keeps the records that it has, and set"


def plan_task(
    kept: KeptTask, changelogs: TaskCopy, inputs: Mapping[TopicPartition, InputState]
) -> WriteBackPlan:
    """Return what to do for a task whose changelogs are right.

    Args:
        kept: the copies, without a problem.
        changelogs: what a restore has, of all stores.
        inputs: the task's input partitions as they are.
    """
    replicas = changelogs.replicas
    owner = max(replica.owner for replica in replicas.values())
    reached = max((r.commit for r in replicas.values()), key=lambda commit: commit.order)
    refusals = [
        f"store {name} has no copy in {kept.directory}, because it is in memory or the file was "
        f"deleted, and its changelog {changelog.topic} is not where the copies of the other stores "
        "are: they cannot be written back alone; to compute the state again, delete the directory "
        "and set the offsets of the group back"
        for name, changelog in kept.missing.items()
        if replicas[name].owner != kept.owner or not is_next_to(replicas[name].commit, kept.commit)
    ]
    if not kept.commit.number and reached.inputs:
        refusals.append(
            f"the copies in {kept.directory} do not say up to where they have the input, and "
            "other members have processed records meanwhile; to do without the copies, delete this "
            "directory"
        )
    ahead = sorted(p for p, at in reached.inputs.items() if at > kept.commit.inputs.get(p, 0))
    if count_write_backs(owner) > count_write_backs(kept.owner) and ahead:
        refusals.append(
            f"another copy of task {kept.task} was written back, and the changelogs have input of "
            f"{_spelled(ahead[0])} up to offset {reached.inputs[ahead[0]]} with it; the copy in "
            f"{kept.directory} has it up to {kept.commit.inputs.get(ahead[0], 0)}: nothing of it "
            f"is needed; delete the directory {kept.directory}, then start the application"
        )
    moves = tuple(
        _move(partition, now, kept.commit, reached)
        for partition, now in sorted(inputs.items(), key=lambda item: item[0])
    )
    return WriteBackPlan(refusals=tuple(refusals), moves=moves)


def _move(partition: TopicPartition, now: InputState, commit: Commit, reached: Commit) -> InputMove:
    """Return where the group continues to read an input partition."""
    at, log = commit.inputs.get(partition), now.log
    known = commit.topic_ids.get(partition.topic)
    to, why = at, ""
    if at is None:
        # Only where records were processed meanwhile, the offset is known to be too high.
        to = log.start if partition in reached.inputs else None
        why = "the copy has none of it"
    elif None not in (known, log.topic_id) and known != log.topic_id:
        to, why = log.start, "the topic was made anew since"
    elif at < log.start:
        why = f"the records up to offset {log.start} were deleted, and are lost to the state"
    elif at > log.end:
        why = f"the topic ends at {log.end}: it has lost records"
    return InputMove(partition=partition, copy=at, committed=now.committed, to=to, why=why)


def _spelled(partition: TopicPartition) -> str:
    return "{}-{}".format(*partition)
