"""The tables of the five papers, as printed and as reproduced."""
