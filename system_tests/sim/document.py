"""One bounce as a document: plain types, stable names."""

from dataclasses import asdict

from system_tests.sim.bounce import Outcome
from system_tests.sim.narrate import replay_command


def outcome_document(outcome: Outcome) -> dict[str, object]:
    """One bounce as plain types with stable names."""
    return {
        "seed": outcome.options.seed,
        "from": outcome.plan.old,
        "to": outcome.plan.new,
        "stages": [
            {"release": stage.release, "upgrade_from": stage.upgrade_from}
            for stage in outcome.plan.stages
        ],
        "ok": outcome.ok,
        "broken": [asdict(broken) for broken in outcome.broken],
        "known": list(outcome.known),
        "rebalances": {
            "total": outcome.rebalances.total,
            "membership": len(outcome.rebalances.membership),
            "version": len(outcome.rebalances.version),
            "followup": len(outcome.rebalances.followup),
            "repeated": len(outcome.rebalances.repeated),
            "version_bound": outcome.version_bound,
        },
        "cost": asdict(outcome.cost),
        "replay": replay_command(outcome),
    }
