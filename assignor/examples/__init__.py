"""Applications to run and to copy: `python -m assignor.examples.word_count --help`."""
