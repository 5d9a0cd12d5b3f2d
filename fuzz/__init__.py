"""Coverage-guided fuzzing of foreign bytes: what is promised about them, and inputs that try it.

`targets` says what has to hold of `encoding`, `group_row` of a line with a group; neither needs a
fuzzer. `run` drives them with atheris; `corpus/` holds the seeds, as text; `findings/`
(not in git) what a run found.
"""
