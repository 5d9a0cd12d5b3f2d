"""Decisions for a huge group on the driver: arrays of counts, never tasks."""
