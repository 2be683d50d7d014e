"""Which metric agrees with people, where, and whether the difference is real."""
