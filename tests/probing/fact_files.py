"""The files of facts, and the module that reads each."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "probing/releases/releases.toml": "probing/releases/rows.py",
    "probing/releases/experiments.toml": "probing/upgrades/formats.py",
    "probing/features/kafka_levels.toml": "probing/features/kafka_table.py",
    "system_tests/plan/changes/changes.toml": "system_tests/plan/changes/rows.py",
    "system_tests/plan/changes/streams.toml": "system_tests/plan/changes/rows.py",
    "system_tests/support/claims/claims.toml": "system_tests/support/claims/model.py",
}
