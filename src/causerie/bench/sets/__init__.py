"""The judged sets: what is known about each, and how it is read, converted and sampled."""
