"""The JSON format of `assignor inspect`: one object per group, with stable key names."""

from typing import Any

from assignor.cli.inspect.streams_groups import streams_document
from assignor.inspection import (
    ClientLook,
    GroupInspection,
    MemberLook,
    TaskLook,
    TopologiesLook,
    VersionsLook,
    is_broker_side,
    offsets_by_topic,
    thread_name,
)
from encoding import NO_REBALANCE, TopicPartition


def document_of(look: GroupInspection) -> dict[str, Any]:
    """Return the object of one group; unknown values are None."""
    described, versions, leader = look.described, look.versions, look.leader
    found: dict[str, Any] = {
        "group": described.group_id,
        "state": described.state,
        "type": described.group_type or None,
        "protocol_type": described.protocol_type,
        "assignor": described.protocol_name or None,
        "streams": look.is_streams,
        "summary": look.summary,
        "members": None if is_broker_side(described) else len(described.members),
        "lag": look.lag,
        "record": {
            "bytes": look.record_bytes,
            "limit": look.record_limit,
            "limit_known": look.limit_known,
        },
        "findings": [
            {"kind": finding.kind, "sentence": finding.sentence} for finding in look.findings
        ],
    }
    if look.streams_group is not None:
        del found["record"]
        found["members"] = len(look.streams_group.group.members)
        found["streams_group"] = streams_document(look.streams_group)
        return found
    if not look.is_streams:
        found["offsets"] = _offsets(look)
        found["clients"] = [_stock_member(member) for member in look.members]
        return found
    if versions is not None:
        found["version"] = _version(versions)
    if leader is not None:
        found["leader"] = {
            "known": leader.known,
            "candidates": list(leader.candidates),
            "why": leader.why,
        }
    if look.topologies is not None:
        found["topology"] = _topologies(look.topologies)
    return found | {
        "next_rebalance_ms": _time(look.next_rebalance_ms),
        "host_map_holes": list(look.host_map_holes),
        "subtopologies": {
            str(number): {
                "sources": list(topics),
                "changelogs": list(look.shape.changelogs.get(number, ())),
            }
            for number, topics in look.shape.sources.items()
        },
        "clients": [_client(client) for client in look.clients],
        "tasks": [_task(task) for task in look.tasks],
    }


def _offsets(look: GroupInspection) -> list[dict[str, Any]]:
    """Return all partitions with a committed offset."""
    facts = look.facts
    return [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "current_offset": facts.committed[partition],
            "log_start_offset": facts.start_offsets.get(partition),
            "log_end_offset": facts.end_offsets.get(partition),
        }
        for row in offsets_by_topic(look)
        for partition in row.committed
    ]


def _task(look: TaskLook) -> dict[str, Any]:
    return {
        "task": str(look.task),
        "inputs": _partitions(look.inputs),
        "owners": list(look.owners),
        "standbys": list(look.standbys),
        "lag": look.lag,
        "end_offset_sum": look.end_sum,
    }


def _topologies(look: TopologiesLook) -> dict[str, Any]:
    return {
        "versions": {str(version): list(names) for version, names in look.processes.items()},
        "undescribed": list(look.undescribed),
        "reached": look.reached and {"version": look.reached.version, "epoch": look.reached.epoch},
        "families": [
            {
                "wanted_version": family.version,
                "epoch": family.epoch,
                "why": family.why,
                "held_by": list(family.held_by),
                "waiting": _partitions(family.waiting),
                "forms": [
                    {
                        "fingerprint": form.fingerprint,
                        "number": form.number,
                        "versions": list(form.versions),
                        "sources": list(form.sources),
                        "changelogs": list(form.changelogs),
                        "carriers": list(form.carriers),
                        "running": {name: list(held) for name, held in form.running.items()},
                        "wanted": form.wanted,
                    }
                    for form in family.forms
                ],
            }
            for family in look.families
        ],
    }


def failed_document(group_id: str, why: str) -> dict[str, Any]:
    """Return the object of a group that cannot be shown: its name and the reason."""
    return {"group": group_id, "summary": why, "findings": [{"kind": "failed", "sentence": why}]}


def _version(look: VersionsLook) -> dict[str, Any]:
    return {
        "in_force": look.in_force,
        "possible": look.possible,
        "finalized_level": look.level,
        "sentence": look.sentence,
        "held_by": [
            {
                "client": holder.client,
                "process_id": holder.process,
                "version": holder.version,
                "kind": holder.kind,
                "why": holder.why,
                "remedy": holder.remedy,
            }
            for holder in look.holders
        ],
    }


def _client(look: ClientLook) -> dict[str, Any]:
    first = look.members[0]
    return {
        "client": look.client,
        "process_id": look.process,
        "endpoint": first.endpoint,
        "rack": first.rack,
        "tags": dict(first.tags),
        "active": [str(task) for task in look.active],
        "standby": [str(task) for task in look.standby],
        "warmup": None if look.warmup is None else [str(task) for task in look.warmup],
        "lag": look.lag,
        "state_lags": {str(task): lag for task, lag in look.state_lags.items()},
        "members": [_member(member) for member in look.members],
    }


def _member(look: MemberLook) -> dict[str, Any]:
    answer, evidence = look.answer, look.evidence
    return _identity(look) | {
        "used": look.used or None,
        "supported": look.supported if look.used else None,
        "native": look.native,
        "pinned_version": look.pin,
        "releases": list(evidence.releases),
        "releases_with_upgrade_from": list(evidence.pinned),
        "upgrade_from": list(evidence.pin_values),
        "generation": look.generation,
        "owned": _partitions(look.owned),
        "offset_sums": {str(task): total for task, total in look.sums},
        "wants_shutdown": look.wants_shutdown,
        "unreadable": look.unreadable or None,
        "answer": {
            "version": answer.version or None,
            "commonly_supported": answer.common or None,
            "native": answer.native,
            "next_version": answer.next_version or None,
            "active": [str(task) for task in answer.active],
            "standby": [str(task) for task in answer.standby],
            "warmup": None if answer.warmup is None else [str(task) for task in answer.warmup],
            "next_rebalance_ms": _time(answer.next_rebalance_ms),
            "error_code": answer.error_code,
        },
    }


def _stock_member(look: MemberLook) -> dict[str, Any]:
    return _identity(look) | {
        "client": look.client,
        "topics": list(look.topics),
        "rack": look.rack,
        "unreadable": look.unreadable or None,
    }


def _identity(look: MemberLook) -> dict[str, Any]:
    return {
        "member_id": look.described.member_id,
        "thread": thread_name(look.described),
        "instance_id": look.described.instance_id,
        "host": look.described.client_host,
        "consumer_protocol": look.consumer_version,
        "partitions": _partitions(look.answer.partitions),
        "bytes": look.record_bytes,
    }


def _partitions(partitions: tuple[TopicPartition, ...]) -> list[str]:
    return [f"{partition.topic}-{partition.partition}" for partition in partitions]


def _time(epoch_ms: int) -> int | None:
    return None if epoch_ms == NO_REBALANCE else epoch_ms
