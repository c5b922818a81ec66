"""The phantom card: a real CUDA build of PyTorch runs on it, memory calls keep books, and nothing is computed.

It is a library that is preloaded into a child process; this package starts such a child. What the library itself does
is in `native/phantom`.
"""
