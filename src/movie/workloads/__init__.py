"""Training runs as people have them, small and readable: `python -m movie.workloads.causal --model opt-1.3b`.

Each file is one kind and runs alone, on a real card or on a phantom (`movie capture -- python -m ...`). Models are
built from their configurations with random weights, batches are random tokens: nothing is downloaded. What a phantom
cannot compute and memory depends on (lengths, routing) is drawn on the host, so that a run is the same on both, given
its seed. Needs PyTorch, and what the file imports.

Strategies are letters: R recomputes activations in the backward pass, L trains LoRA adapters (peft), O keeps the
optimizer on the host; N is none of these.
"""
