"""Inspection of groups of a live cluster: asked by `groups.py`, read by `assignor.inspection`."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from assignor.adapters.admin.client import Admin, BrokerError, NotAuthorized
from assignor.adapters.admin.groups import cluster_facts, describe_group, list_groups
from assignor.inspection import (
    ClusterFacts,
    DescribedGroup,
    Finding,
    GroupInspection,
    group_topics,
    inspect_group,
    is_broker_side,
    is_settling,
)
from encoding import shown

_LOOK_S: Final = 0.2


def look_at_group(admin: Admin, group_id: str) -> GroupInspection:
    """One group, once it is settled, or as it is when half of the time is over.

    Raises:
        BrokerError, NotAuthorized: the cluster does not tell.
    """
    end = time.monotonic() + admin.target.timeout_ms / 2000
    group = describe_group(admin, group_id)
    while is_settling(group) and time.monotonic() < end:
        time.sleep(_LOOK_S)
        group = describe_group(admin, group_id)
    if group.state == "Dead":
        group = _as_listed(group, _listed(admin, group_id))
    return _look(admin, group)


def look_at_all_groups(admin: Admin) -> Iterator[GroupInspection]:
    """Every group of the cluster, sorted, as each is now; the clock starts anew for each.

    Raises:
        BrokerError, NotAuthorized: the cluster does not list them, or does not answer any more. A
            group that may not be described, or whose inspection fails, is yielded with that as its
            summary and its finding.
    """
    for listed in list_groups(admin):
        admin.again()
        try:
            yield _look(admin, _as_listed(describe_group(admin, listed.group_id), listed))
        except NotAuthorized as error:
            yield _failed(listed, "not-told", str(error))
        except BrokerError:
            raise
        except Exception as error:  # noqa: BLE001 a defect at one group hides no other group
            why = f"cannot be inspected: {type(error).__name__}: {error}"
            yield _failed(listed, "failed", why)


def _failed(listed: DescribedGroup, kind: str, why: str) -> GroupInspection:
    """A group of which only the name is known, and why."""
    sentence = shown(why, limit=None)
    told = Finding(kind=kind, sentence=sentence)
    return GroupInspection(described=listed, summary=sentence, findings=(told,))


def _listed(admin: Admin, group_id: str) -> DescribedGroup | None:
    """The group as it is listed, whatever its kind; None where it is not, or nobody tells."""
    try:
        listed = list_groups(admin)
    except NotAuthorized:
        return None
    return next((one for one in listed if one.group_id == group_id), None)


def _as_listed(group: DescribedGroup, listed: DescribedGroup | None) -> DescribedGroup:
    """Add its kind; its state too where the coordinator shows no classic group of that name."""
    if listed is None:
        return group
    group = replace(group, group_type=listed.group_type)
    return replace(group, state=listed.state or group.state) if is_broker_side(group) else group


def _look(admin: Admin, group: DescribedGroup) -> GroupInspection:
    facts = ClusterFacts()
    if group.members and group.protocol_name:
        facts = cluster_facts(admin, group.group_id, lambda names: group_topics(group, names))
    return inspect_group(group, facts)
