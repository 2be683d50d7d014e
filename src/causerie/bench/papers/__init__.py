"""The tables of the five papers, printed and ours."""
