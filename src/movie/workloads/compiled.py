"""Training of a small transformer compiled by torch.compile, with varying sequence lengths."""

from typing import Any

import torch
from torch.nn.functional import cross_entropy

from movie.workloads.batches import batches
from movie.workloads.options import Options, options, parser
from movie.workloads.report import report

LAYERS, WIDTH, HEADS, VOCABULARY = 6, 1024, 16, 32000


class Language(torch.nn.Module):
    """A causal transformer of 6 layers."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(
            WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = torch.nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: Any) -> Any:
        mask = torch.nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        return self.head(self.layers(self.embedding(tokens), mask=mask, is_causal=True))


def train(chosen: Options) -> None:
    torch.set_default_dtype(torch.bfloat16)
    model = Language().cuda().train()
    forward = torch.compile(model, dynamic=chosen.lengths == "var")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for tokens in batches(chosen):
        logits = forward(tokens)
        loss = cross_entropy(logits[:, :-1].reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))
        del logits
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        del tokens, loss


if __name__ == "__main__":
    chosen = options(parser(__doc__, model="transformer-6", batch=16, length=1024).parse_args())
    train(chosen)
    report(f"{chosen.model} compiled")
