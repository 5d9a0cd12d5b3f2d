"""Reasons why a group ends worse than with Kafka's assignor, found in the group itself."""


def why_above(data, key, ours, kafkas):
    """The reason why a figure is above Kafka's."""
    config = data["config"]
    rows = (
        ("no rack strategy is set", "rack" in key and _strategy(config) == "none"),
        (
            "copies of a task are spread over racks; Kafka's are not for all tasks",
            key == "standby_cross_rack"
            and kafkas.get("rack_shortfall", 0) > ours.get("rack_shortfall", 0),
        ),
        (
            "moves cost more than traffic here, and ours count from the running owner",
            key == "active_cross_rack"
            and (config.get("rack.aware.assignment.non_overlap_cost") or 0) > 0,
        ),
        ("copies stay with their state and in other racks", key == "standby_cross_rack"),
        ("no reason known", True),
    )
    return next(why for why, holds in rows if holds)


def why_over(final):
    """The reason why a crash overloads a remaining client of a group without racks and tags."""
    if final["tasks_a_client"] < 5:
        return "with so few tasks a client one task is beyond the limit, and would be restored"
    return "copies of all kinds are level, so clients that run the most hold standbys too"


def _strategy(config):
    return config.get("rack.aware.assignment.strategy") or "none"
