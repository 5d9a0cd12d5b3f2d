"""How an application is reset, with Kafka's tool: its command, and which topics it deletes.

The tool infers the internal topics: all that begin with the application id and `-`, and end as
Kafka Streams names its own (`isInferredInternalTopic` of `StreamsResetter`, 2.6 to 4.3). So it also
infers those of another application whose id begins with the same text. `--internal-topics`, from
3.0 on (KIP-623), names a part of them; `--bootstrap-server` is an option from 3.4 on (KIP-865).
"""

from typing import Final

from encoding.primitives import shell_word
from system_tests.plan.group import SimulatedGroup

_SHOWN: Final = 5


def reset_lines(group: SimulatedGroup) -> tuple[str, ...]:
    """Return the command that resets the application of a group, and what it deletes."""
    internal = ",".join(map(shell_word, group.internal_topics))
    names = (
        "these are the internal topics of the group as far as they are known"
        if internal
        else "TOPIC,TOPIC of --internal-topics are those that the tool lists without this option,"
        " except topics of other groups"
    )
    longer = _and_more(group.longer_groups)
    prefix = shell_word(f"{group.name}-") if group.name else f"{group.id}-"
    command = (
        "kafka-streams-application-reset.sh --bootstrap-server HOST:PORT"
        f" --application-id {group.id} --input-topics {group.inputs}"
        f" --internal-topics {internal or 'TOPIC,TOPIC'}"
    )
    others = (
        "without --internal-topics the tool also deletes the changelogs and repartition topics of"
        f" other groups whose id begins with {prefix}{f', here {longer}' if longer else ''}"
    )
    return (
        command,
        f"take the tool of Kafka 3.4 or later, and give it --dry-run first; {names}",
        others,
    )


def _and_more(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(shell_word, names[:_SHOWN])) + more
