"""Inspection of groups of a live cluster: brokers are asked, `assignor.inspection` decodes.

All groups of `--all` are asked about together: one request for each coordinator or leader, one for
the topics. A group that cannot be described or inspected does not hide the others.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from assignor.adapters.admin.client import Admin, BrokerError, NotAuthorized, Refused
from assignor.adapters.admin.coordinators import answer_of
from assignor.adapters.admin.facts import facts_of_groups
from assignor.adapters.admin.groups import describe_groups, describe_settled, list_groups
from assignor.adapters.admin.streams_groups import (
    describe_streams_groups,
    read_streams_group,
    streams_facts,
)
from assignor.inspection import (
    ClusterFacts,
    DescribedGroup,
    DescribedStreamsGroup,
    Finding,
    GroupInspection,
    group_topics,
    group_topics_of,
    inspect_group,
    is_broker_side,
    is_present,
    look_at_streams_group,
)
from encoding import shown

_STREAMS: Final = "streams"
_WITHOUT_OFFSETS: Final = frozenset({"share"})


def look_at_group(admin: Admin, group_id: str) -> GroupInspection:
    """Return the inspection of one group; wait until it has settled, at most half the time limit.

    All groups are listed: internal topics of `app-2` begin as those of `app` do.

    Raises:
        BrokerError, NotAuthorized: the cluster does not answer, or not to this user.
    """
    group = describe_settled(admin, group_id)
    try:
        others = list_groups(admin)
    except NotAuthorized:
        others = []
    if group.state == "Dead":
        group = _as_listed(group, next((g for g in others if g.group_id == group_id), None))
    [look] = _looks(admin, [group], [listed.group_id for listed in others])
    return look()


def look_at_all_groups(admin: Admin) -> Iterator[GroupInspection]:
    """Yield the inspection of every group, sorted; the time limit restarts for each kind of data.

    A group that cannot be described or inspected is yielded with the error as its summary.

    Raises:
        BrokerError, NotAuthorized: the cluster does not list the groups, or does not answer.
    """
    listed = {group.group_id: group for group in list_groups(admin)}
    if not listed:
        return
    admin.again()
    found = describe_groups(admin, list(listed))
    described = {
        group_id: _as_listed(group, listed[group_id])
        for group_id, group in found.items()
        if not isinstance(group, BrokerError)
    }
    admin.again()
    looks = dict(zip(described, _looks(admin, [*described.values()], list(listed)), strict=True))
    for group_id, group in listed.items():
        try:
            answer_of(found[group_id])
            yield looks[group_id]()
        except Refused as error:
            yield _failed(group, "not-told", str(error))
        except BrokerError as error:
            yield _failed(group, "failed", str(error))
        except Exception as error:  # noqa: BLE001 an error in one group must not hide the others
            why = f"cannot be inspected: {type(error).__name__}: {error}"
            yield _failed(group, "failed", why)


def _looks(
    admin: Admin, groups: Sequence[DescribedGroup], group_ids: Sequence[str]
) -> list[Callable[[], GroupInspection]]:
    """Return for each group what returns its inspection, or raises why there is none.

    Args:
        admin: the connected admin client.
        groups: as described.
        group_ids: of all groups of the cluster, as far as known.
    """
    streams = [group.group_id for group in groups if _is_streams(group)]
    found = {
        group_id: _read(answer)
        for group_id, answer in describe_streams_groups(admin, streams).items()
    }
    asked = {}
    for group in groups:
        streams_group = found.get(group.group_id)
        if isinstance(streams_group, Exception) or not _has_facts(group):
            continue
        asked[group.group_id] = (
            partial(group_topics, group, others=group_ids)
            if streams_group is None
            else partial(_named, group_topics_of(streams_group))
        )
    facts = facts_of_groups(admin, asked)
    return [
        partial(_look, group, found.get(group.group_id), facts.get(group.group_id, ClusterFacts()))
        for group in groups
    ]


def _named(topics: set[str], names: Iterable[str]) -> set[str]:
    return topics.intersection(names)


def _is_streams(group: DescribedGroup) -> bool:
    return group.group_type == _STREAMS and is_broker_side(group)


def _has_facts(group: DescribedGroup) -> bool:
    """Whether topics and offsets are asked for: members of a rebalance have not said theirs."""
    is_settled = bool(group.protocol_name) or not group.members
    return is_present(group) and is_settled and group.group_type not in _WITHOUT_OFFSETS


def _read(answer: tuple[Any, str] | Exception) -> DescribedStreamsGroup | Exception:
    try:
        return read_streams_group(*answer_of(answer))
    except Exception as error:  # noqa: BLE001 an error in one group must not hide the others
        return error


def _look(
    group: DescribedGroup,
    streams_group: DescribedStreamsGroup | Exception | None,
    facts: ClusterFacts,
) -> GroupInspection:
    if streams_group is None:
        return inspect_group(group, facts)
    described = answer_of(streams_group)
    return look_at_streams_group(described, streams_facts(described, facts))


def _failed(listed: DescribedGroup, kind: str, why: str) -> GroupInspection:
    """Return the inspection of a group of which only the name is known."""
    sentence = shown(why, limit=None)
    finding = Finding(kind=kind, sentence=sentence)
    return GroupInspection(described=listed, summary=sentence, findings=(finding,))


def _as_listed(group: DescribedGroup, listed: DescribedGroup | None) -> DescribedGroup:
    """Return the group with the listed type, and with the listed state if it is not classic."""
    if listed is None:
        return group
    group = replace(group, group_type=listed.group_type)
    return replace(group, state=listed.state or group.state) if is_broker_side(group) else group
