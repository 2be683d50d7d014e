"""The judged sets: what is known about each, how it is read, converted and sampled."""
