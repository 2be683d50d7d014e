"""The explorer: scored conversations found, read, compared and marked, a million turns at once."""
