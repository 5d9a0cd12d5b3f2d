"""Assignment of many groups, or of one huge group, as a PySpark job."""
