"""A group whose leader also gets the blobs of hostile members."""

from dataclasses import replace

from assignor import AssignmentConfig, LeaderSettings, assign_group
from tests.assignor.rebalance.forms.mixed_group import NATIVE, MixedGroup
from tests.assignor.rebalance.groups import start
from tests.assignor.rebalance.leader.hostile import written

COUNTS = {"lines": 4, "more": 2, "other": 3}
OTHER = b"12345678"


class Attacked(MixedGroup):
    """A group whose leader `m0` also gets the blob of a hostile member."""

    def __init__(self, *programs):
        super().__init__()
        for number, program in enumerate(programs):
            self.start(f"m{number}", program)

    def lead(self, *blobs):
        """One rebalance; returns member id -> partitions of the honest members."""
        self.generation += 1
        honest = [
            written(member, name, native={"owned_generation": self.generation - 1})
            for name, member in self.members.items()
        ]
        program = self.programs["m0"]
        settings = LeaderSettings(
            release=NATIVE,
            subtopologies=program.subtopologies,
            config=AssignmentConfig(),
            versions=program.versions,
        )
        known = replace(self.knowledge["m0"], leader_id="m0", generation=self.generation)
        self.last = assign_group(settings, [*honest, *blobs], COUNTS, knowledge=known)
        assert self.last.faults == ()
        self.knowledge["m0"] = self.last.remembered()
        for name, member in self.members.items():
            answer = self.last.answers[name]
            received = member.receive(answer.partitions, answer.user_data, now_ms=1)
            assert received.failure == ""
        return sorted(p for name in self.members for p in self.last.answers[name].partitions)


def hostile(*rows, fingerprint=OTHER, version=9, name="x", **native):
    fields = {"fingerprint": fingerprint, "topology_version": version, "carried": rows, **native}
    return written(start("native", number=99), name, native=fields)
