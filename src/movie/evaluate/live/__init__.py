"""Real training programs on a phantom card, side by side: PyTorch's allocator, its expandable segments, MOVie.

python -m movie.evaluate.live [NAME...]
"""
