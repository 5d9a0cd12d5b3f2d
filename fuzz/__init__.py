"""Coverage-guided fuzzing of all readers of foreign bytes.

`targets` checks the promises of `encoding`, the other modules those of their readers; none needs a
fuzzer. `run` runs them with atheris. `corpus/` holds the seeds as text; `findings/` (not in git)
holds the findings of runs.
"""
