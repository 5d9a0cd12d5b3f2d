"""Live bounces: real client processes on a broker, and a verdict over what they report."""
