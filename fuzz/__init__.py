"""Coverage-guided fuzzing of `encoding`: what is promised about bytes, and inputs that try it.

`targets` says what has to hold and needs no fuzzer; `fuzz_encoding` drives it with atheris;
`corpus/` holds the seeds, as text; `findings/` (not in git) what a run found.
"""
