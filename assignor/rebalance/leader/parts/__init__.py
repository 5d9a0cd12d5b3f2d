"""The parts of a leader that can be absent: what the stages call, and what holds without a part."""
