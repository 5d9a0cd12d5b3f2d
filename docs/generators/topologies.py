"""docs/topologies.md: the rules of a rolling change of the topology, from their tables."""

from docs.generators.negotiation import table, template
from probing.topologies import (
    CHAIN_RULES,
    CLAIM_RULES,
    FORM_RULES,
    TOPOLOGY_ANSWER_RULES,
    TOPOLOGY_MEMBER_RULES,
    UNIT_RULES,
)

_TOP = """# Which form of a subtopology runs

To plan a change of an application, with its state and its rollback:

```console
$ rolling-bounce plan --topology \\
    assignor.examples.topologies:FIRST assignor.examples.topologies:SECOND
topology version 1 -> 2
...
```

[change-topology](change-topology.md) explains how to change an application. This page has the rules
as decision tables. In every table, the first row that applies decides; words in italics stand for
values.

A subtopology is identified by its *content*: source topics, repartition topics among them, and
stores with their changelogs. Two subtopologies are *forms* of each other if they read a topic or
write a changelog in common; they are a *family*. A family with one form, of which nothing is
remembered, always runs, on every member that has it. A subtopology that a change adds, removes or
leaves as it is is such a family.

`python -m docs.generate` writes this page from the tables in `probing/topologies`."""

_FORMS = """## The wanted version of a family

*Newest* is the highest version of the topology that a live member carries a form of. *Reached* is
what the memory says, with its *epoch*."""

_UNITS = """## A partition of a family

A partition whose form is *same* keeps its members and its forms: where a change merges
subtopologies, a partition number has several old forms, and all of them stay until the number
changes. A partition whose form is *wanted* is placed by the strategy, on the members that have the
wanted form; its member can be one of them. Balance takes partitions from members with the old form
only so far that all members that can run the family have equal shares."""

_CHAINS = """## A chain changes together

A member writes to all partitions of a repartition topic. If one version reads the topic and another
version of the same family reads something else, then no partition may change before the others: its
part of the topic would have no reader. The same holds if the versions read the topic in different
subtopologies and also write it in different ones: the readers would take records for others. The
families of the readers and of all writers of such a topic are a *chain*; so are the writers of all
other topics that only one version of the chain reads. One version of the whole chain runs, on the
members that can run this version; the leader decides which by these rules. The version of the
topology that a family wants is decided as above, for the chain as for one family.

A repartition topic makes no chain if both versions read it in the same subtopology, or both write
it in the same ones. So a store may be added or renamed either before or after the topic, and a
branch that writes to a topic of its own may be added or removed."""

_WAITS = """## What waits is reported

The leader reports partitions that wait (`on_error`, the log, and the metric
`streams_rebalance_leader_waiting_partitions`): those of the last row above, and the partitions of
every source topic that a live member's version reads and no task of this generation does. These are
partitions of a source that only one of the two versions has: they wait where, or while, the other
version runs."""

_CLAIMS = """## Which memory is believed

Every member carries the memory of reached versions in its subscriptions, and keeps it in its state
directory: fingerprint of a form, epoch, version. The leader also keeps it beside the levels, if it
has a level source (`GroupLevels`, `FolderLevels`), and reads it there; what it finds counts as its
own memory. The highest believed epoch wins.

Entries that others add cannot displace those of the group:

- A member takes from a level source the entries of forms that it carries or remembers, the leader
  also those of all forms that live members carry or remember. All others stay at the source.
- A member keeps 256 entries: of its own forms, then of those that the leader names, then of the
  highest epochs.
- An answer has all entries of forms that the leader or two processes carry, and 64 others: of the
  forms of single processes, one of each process in turn, then those that most processes remember.
- In the topic, an epoch more than 2**19 above the lowest one is ignored. A member ignores epochs at
  a level source that are more than 2**20 above the highest one that it remembers itself.
- An epoch is never raised beyond those that leaders believe."""

_LIMITS = """## Limits

- A leader that does not know what a member can run asks it, and starts nothing new in that
  rebalance: tasks stay where they run, and standby copies of these tasks go on, up to
  `num.standby.replicas` each. Copies of other tasks, and warm-ups, stop until the next rebalance:
  the leader does not know in which form these tasks run. Tasks of the asked members pause until the
  next rebalance, in which they go on; if the leader ends in between, they start in the new form. At
  most two rebalances in a row are of this kind: after them, tasks start on the members that are
  known.
- A member that does not take the answer that asks it is asked again, in 3 answers in all: at most 3
  rebalances more for each member that starts. After them it gets tasks in the first rebalance after
  that in which it takes an answer. A leader whose client does not tell the generation asks once.
- If a single process remembers a reached version, cannot run it, and does not lead, it is not
  believed: tasks may return to the old form. This state needs crashes of two other members.
- Standby copies of a partition that stays in an old form are not kept.
- Records that are left in a repartition topic when a chain changes are not read any more.
- A version counts as reached from the first rebalance with a member that carries it, even while its
  chain still runs in the other version. If all such members stop, orphaned partitions wait.
- Between the rebalance that changes a chain and the one after it, no member runs the chain.
- A program may carry two versions of a chain only if each task writes the same topics in both.
- While members run different topologies, tasks are placed separately for each set of members that
  can run them: load is balanced, and `max.warmup.replicas` holds, within each set and not across
  them.
- While members run different topologies beside JVM members, only one topology gets tasks.
  A single member that looks like one of Kafka's has this effect during a change of the topology,
  too: members with a later version get no tasks until it is stopped.
- A leader plans tasks for another program if that leaves the partition counts and kinds of all
  topics as they are. The program may have 8 forms of a subtopology, 256 subtopologies, 64 versions
  and repartition topics of 10,000 partitions (more where they exist), and may add 10,000 tasks or
  four times those of the leader. If two programs contradict each other, the leader's own is
  planned, then the one that more processes run, then the one that was described before.
- A member that carries a higher version is believed: its form is wanted from then on. Let only
  members that you trust join the group (ACLs of the group). To go back, use
  `assignor features downgrade-topology`.
- A member that starts without a state directory reads the memory beside its level source while it
  joins. On a broker without `group.initial.rebalance.delay.ms` it may join first; then the old form
  can run until the leader has read the memory, for one rebalance."""


def render() -> str:
    """Return the whole page."""
    forms = [
        (rule.name, "yes" if rule.says.remembered else "", template(rule.why))
        for rule in FORM_RULES
    ]
    units = [(rule.name, rule.says, template(rule.why)) for rule in UNIT_RULES]
    chains = [
        (rule.name, "wanted" if rule.says else "other", template(rule.why)) for rule in CHAIN_RULES
    ]
    claims = [(rule.name, "yes" if rule.says else "no", template(rule.why)) for rule in CLAIM_RULES]
    members = [(rule.name, rule.says, template(rule.why)) for rule in TOPOLOGY_MEMBER_RULES]
    answers = [
        (rule.name, "yes" if rule.says else "no", template(rule.why))
        for rule in TOPOLOGY_ANSWER_RULES
    ]
    parts = [
        _TOP,
        _FORMS,
        table(("rule", "remembered", "why"), forms),
        _UNITS,
        table(("rule", "form", "why"), units),
        _WAITS,
        _CHAINS,
        table(("rule", "version that runs", "why"), chains),
        _CLAIMS,
        table(("rule", "believed", "why"), claims),
        "## What a leader does with a member",
        table(("rule", "the member", "why"), members),
        "## What a member does with an answer",
        table(("rule", "runs its tasks", "why"), answers),
        _LIMITS,
    ]
    return "\n\n".join(parts) + "\n"
