"""The training room: one loop, samplers, checkpoints. Metrics say what is trained."""
