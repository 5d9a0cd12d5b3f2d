"""Rules that no simulated cluster may break: functions over what happened."""
