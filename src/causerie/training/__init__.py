"""Training: the loop, samplers and checkpoints that all trained metrics share."""
