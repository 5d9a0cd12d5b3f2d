"""The same question, a million times: assignment as a PySpark job."""
