"""The evaluation: training runs on a phantom card under PyTorch's own allocators, replayed under all others."""
