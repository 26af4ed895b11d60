"""Makes tests/data/training/curve.safetensors: 200 training steps of a small transformer, computed by PyTorch.

Made with PyTorch 2.15.0 on the CPU:

    python3 tests/data/make_curve.py

The model is that of rapt::Transformer, built with torch.nn. Its initial weights are stored in f32, under the parameter
names of rapt's files. `losses` is the loss of each step, trained in f32, and `losses_f64` the same in f64, so that the
difference is the error of f32. Batches come from an integer formula that tests/nn/training_curve_test.cc also uses.
"""

import pathlib

import torch
from safetensors.torch import save_file

FILE = pathlib.Path(__file__).parent / "training" / "curve.safetensors"
VOCABULARY, CONTEXT, WIDTH, LAYERS, HEADS, HIDDEN = 24, 32, 32, 2, 4, 64
STEPS, BATCH = 200, 8
RATE, DECAY, CLIP = 3e-3, 0.01, 1.0


class Attention(torch.nn.MultiheadAttention):
    def forward(self, x):
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return super().forward(x, x, x, attn_mask=hidden, need_weights=False)[0]


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.attention = Attention(WIDTH, HEADS, batch_first=True)
        self.mlp = torch.nn.ModuleDict({"up": torch.nn.Linear(WIDTH, HIDDEN), "down": torch.nn.Linear(HIDDEN, WIDTH)})

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp["down"](torch.nn.functional.gelu(self.mlp["up"](self.norm2(x))))


class Transformer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = torch.nn.Embedding(VOCABULARY, WIDTH), torch.nn.Embedding(CONTEXT, WIDTH)
        self.layers = torch.nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.output = torch.nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight[:tokens.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))

    def decays(self, name, parameter):
        return parameter.dim() == 2 and not name.startswith(("tokens", "positions"))


def batch_of(step):
    """Rows that count up, each by its own increment, which only earlier tokens reveal: (B, L + 1)."""
    row, place = torch.arange(BATCH)[:, None], torch.arange(CONTEXT + 1)[None, :]
    return (7 * step + 5 * row + place * (1 + (3 * step + row) % 7)) % VOCABULARY


def train(model):
    named = list(model.named_parameters())
    groups = [{"params": [p for name, p in named if model.decays(name, p) == decays],
               "weight_decay": DECAY if decays else 0.0} for decays in (True, False)]
    optimizer = torch.optim.AdamW(groups, lr=RATE)
    losses = []
    for step in range(STEPS):
        tokens = batch_of(step)
        logits = model(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses, dtype=torch.float64)


def main():
    torch.manual_seed(1)
    model = Transformer()
    kept = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    twin = Transformer().double()
    twin.load_state_dict(model.state_dict())
    kept["losses"], kept["losses_f64"] = train(model), train(twin)
    save_file(kept, FILE)
    apart = ((kept["losses"] - kept["losses_f64"]).abs() / kept["losses_f64"]).max().item()
    print(f"{FILE.name}: {FILE.stat().st_size} bytes; loss {kept['losses'][0]:.3f} to {kept['losses'][-1]:.3f}, "
          f"f32 and f64 apart by {apart:.1e}")


if __name__ == "__main__":
    main()
