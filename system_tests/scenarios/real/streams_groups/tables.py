"""The tables of `kafka-streams-groups.sh`: as it prints them, and made of the JSON of `inspect`."""

import re


def rows(tool, servers, group_id, *words):
    """The table that Kafka's tool prints, as one dict per row."""
    done = tool.run("--bootstrap-server", servers, "--describe", "--group", group_id, *words)
    assert done.status == 0, done.out
    # Of an empty group the tool says first that it has no active members.
    printed = [line for line in done.out.splitlines() if line.strip()]
    header, *lines = [line for line in printed if not line.startswith("Error: Streams group")]
    starts = [found.start() for found in re.finditer(r"(?:\S+ \(ID\)|\S+)", header)]
    names = [found[0] for found in re.finditer(r"(?:\S+ \(ID\)|\S+)", header)]
    ends = [*starts[1:], None]
    return [
        {
            name: line[start:end].strip()
            for name, start, end in zip(names, starts, ends, strict=True)
        }
        for line in lines
    ]


def assignments(current, target):
    """Tasks as Kafka's tool spells them: `ACTIVE: 0:[0,2]; 1:[0,2]; TARGET-ACTIVE: ...`."""
    text = ""
    for prefix, roles in (("", current), ("TARGET-", target)):
        for role in ("active", "standby", "warmup"):
            by_part = {}
            for task in roles[role]:
                part, _, number = task.rpartition("_")
                by_part.setdefault(part, []).append(number)
            if by_part:
                listed = " ".join(f"{part}:[{','.join(n)}];" for part, n in by_part.items())
                text += f"{prefix}{role.upper()}: {listed} "
    return text.strip()


def as_tool_state(found):
    group = found["streams_group"]
    return {
        "GROUP": found["group"],
        "COORDINATOR (ID)": group["coordinator"],
        "ASSIGNOR": group["assignor"],
        "STATE": found["state"],
        "GROUP-EPOCH": str(group["group_epoch"]),
        "TARGET-ASSIGNMENT-EPOCH": str(group["target_assignment_epoch"]),
        "#MEMBERS": str(found["members"]),
    }


def as_tool_members(found):
    group = found["streams_group"]
    return [
        {
            "GROUP": found["group"],
            "TARGET-ASSIGNMENT-EPOCH": str(group["target_assignment_epoch"]),
            "TOPOLOGY-EPOCH": str(group["topology_epoch"]),
            "MEMBER": member["member_id"],
            "MEMBER-PROTOCOL": member["protocol"],
            "MEMBER-EPOCH": str(member["member_epoch"]),
            "PROCESS": member["process_id"],
            "CLIENT-ID": member["client_id"],
            "ASSIGNMENTS": assignments(member["current"], member["target"]),
        }
        for member in group["members"]
    ]


def as_tool_offsets(found):
    def spelled(value):
        return "-" if value is None else str(value)

    return [
        {
            "GROUP": found["group"],
            "TOPIC": row["topic"],
            "PARTITION": str(row["partition"]),
            "CURRENT-OFFSET": spelled(row["current_offset"]),
            "LEADER-EPOCH": spelled(row["leader_epoch"]),
            "LOG-END-OFFSET": str(row["log_end_offset"]),
            "OFFSET-LAG": str(row["lag"]),
        }
        for row in found["streams_group"]["offsets"]
    ]


def by_key(table, *names):
    return sorted(table, key=lambda row: [row[name] for name in names])
