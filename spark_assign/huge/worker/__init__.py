"""Passes over the task rows of a huge group in the Python workers."""
