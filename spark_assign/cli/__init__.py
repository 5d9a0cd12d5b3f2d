"""The program `spark-assign`: options, session, commands."""
