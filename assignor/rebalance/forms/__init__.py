"""Forms of subtopologies in a group with several topologies: who carries what, and what runs."""
