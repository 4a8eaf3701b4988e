"""An hour of bad luck for a ring of real processes: see tests/ring/nemesis."""
