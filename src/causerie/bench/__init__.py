"""Which metric agrees with people, where, and is the difference real."""
