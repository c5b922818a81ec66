"""Recording an unmodified program: on a phantom card, or on the one that this machine has."""
