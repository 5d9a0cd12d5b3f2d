"""The group leader's half of a rebalance: subscriptions in, one answer per member out."""
