"""The world, the experiments, the verdicts: embedded broker, live bounces, simulator."""
