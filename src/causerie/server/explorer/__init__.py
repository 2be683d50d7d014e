"""The explorer: find, read, compare and tag scored conversations, up to millions of turns."""
