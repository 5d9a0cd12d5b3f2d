"""Inspection of groups of a live cluster: `groups.py` queries, `assignor.inspection` decodes."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from assignor.adapters.admin.client import Admin, BrokerError, NotAuthorized
from assignor.adapters.admin.groups import (
    cluster_facts,
    describe_group,
    describe_settled,
    list_groups,
)
from assignor.adapters.admin.streams_groups import describe_streams_group, streams_facts
from assignor.inspection import (
    ClusterFacts,
    DescribedGroup,
    Finding,
    GroupInspection,
    group_topics,
    inspect_group,
    is_broker_side,
    look_at_streams_group,
)
from encoding import shown

_STREAMS: Final = "streams"


def look_at_group(admin: Admin, group_id: str) -> GroupInspection:
    """Return the inspection of one group; wait until it has settled, at most half the time limit.

    Raises:
        BrokerError, NotAuthorized: the cluster does not answer, or not to this user.
    """
    group = describe_settled(admin, group_id)
    if group.state == "Dead":
        group = _as_listed(group, _listed(admin, group_id))
    return _look(admin, group)


def look_at_all_groups(admin: Admin) -> Iterator[GroupInspection]:
    """Yield the inspection of every group, sorted; the time limit restarts for each group.

    A group that cannot be described or inspected is yielded with the error as its summary.

    Raises:
        BrokerError, NotAuthorized: the cluster does not list the groups, or does not answer.
    """
    for listed in list_groups(admin):
        admin.again()
        try:
            yield _look(admin, _as_listed(describe_group(admin, listed.group_id), listed))
        except NotAuthorized as error:
            yield _failed(listed, "not-told", str(error))
        except BrokerError:
            raise
        except Exception as error:  # noqa: BLE001 an error in one group must not hide the others
            why = f"cannot be inspected: {type(error).__name__}: {error}"
            yield _failed(listed, "failed", why)


def _failed(listed: DescribedGroup, kind: str, why: str) -> GroupInspection:
    """Return the inspection of a group of which only the name is known."""
    sentence = shown(why, limit=None)
    finding = Finding(kind=kind, sentence=sentence)
    return GroupInspection(described=listed, summary=sentence, findings=(finding,))


def _listed(admin: Admin, group_id: str) -> DescribedGroup | None:
    """Return the group as listed; None if it is not listed or may not be."""
    try:
        listed = list_groups(admin)
    except NotAuthorized:
        return None
    return next((group for group in listed if group.group_id == group_id), None)


def _as_listed(group: DescribedGroup, listed: DescribedGroup | None) -> DescribedGroup:
    """Return the group with the listed type, and with the listed state if it is not classic."""
    if listed is None:
        return group
    group = replace(group, group_type=listed.group_type)
    return replace(group, state=listed.state or group.state) if is_broker_side(group) else group


def _look(admin: Admin, group: DescribedGroup) -> GroupInspection:
    if group.group_type == _STREAMS and is_broker_side(group):
        streams_group = describe_streams_group(admin, group.group_id)
        facts_of = streams_facts(admin, streams_group)
        return look_at_streams_group(streams_group, facts_of)
    facts = ClusterFacts()
    if group.members and group.protocol_name:
        facts = cluster_facts(admin, group.group_id, lambda names: group_topics(group, names))
    return inspect_group(group, facts)
