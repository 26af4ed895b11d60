"""Makes tests/data/training/steps.safetensors: the operations of a small transformer and their gradients, computed by
PyTorch.

Made with PyTorch 2.15.0 on the CPU, everything in f64:

    python3 tests/data/make_training.py

`<step>/<name>` is an input, a result, or (`d…`) a gradient. `adamw/p0` is a parameter, `adamw/g<n>` its gradient at step
n and `adamw/p<n>` the parameter after that step. `mha/…` is a MultiheadAttention, batch first and causal, by the names
of its state dict; `cross/…` is one with separate key and value sizes.
"""

import pathlib

import torch
from safetensors.torch import save_file

FILE = pathlib.Path(__file__).parent / "training" / "steps.safetensors"
torch.set_default_dtype(torch.float64)
torch.manual_seed(1)
kept = {}


def keep(step, **tensors):
    for name, tensor in tensors.items():
        kept[f"{step}/{name.replace('__', '.')}"] = tensor.detach().clone().contiguous()


def leaf(*shape, scale=1.0):
    return (scale * torch.randn(*shape)).requires_grad_()


def linear():
    x, weight, bias, dy = leaf(7, 5), leaf(6, 5), leaf(6), torch.randn(7, 6)
    y = torch.nn.functional.linear(x, weight, bias)
    y.backward(dy)
    keep("linear", x=x, weight=weight, bias=bias, dy=dy, y=y, dx=x.grad, dweight=weight.grad, dbias=bias.grad)


def layer_norm():
    x, weight, bias, dy = leaf(9, 12, scale=3.0), leaf(12), leaf(12), torch.randn(9, 12)
    y = torch.nn.functional.layer_norm(x + 2.0, (12,), weight, bias)
    y.backward(dy)
    keep("layer_norm", x=x + 2.0, weight=weight, bias=bias, dy=dy, y=y, dx=x.grad, dweight=weight.grad, dbias=bias.grad)


def gelu():
    x = torch.cat([torch.randn(40) * 3.0, torch.tensor([0.0, -40.0, 40.0, -6.0, 6.0])]).reshape(5, 9).requires_grad_()
    dy = torch.randn(5, 9)
    y = torch.nn.functional.gelu(x)
    y.backward(dy)
    keep("gelu", x=x, dy=dy, y=y, dx=x.grad)


def cross_entropy():
    logits = leaf(8, 11, scale=4.0)
    targets = torch.tensor([3, 0, -1, 10, 5, -1, 5, 7])
    loss = torch.nn.functional.cross_entropy(logits, targets, ignore_index=-1)
    loss.backward()
    keep("cross_entropy", logits=logits, targets=targets.double(), loss=loss.reshape(1), dlogits=logits.grad)


def adamw():
    parameter = torch.nn.Parameter(torch.randn(4, 5))
    optimizer = torch.optim.AdamW([parameter], lr=0.03, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1)
    keep("adamw", p0=parameter)
    for step in range(1, 7):
        parameter.grad = torch.randn(4, 5) * 10.0 ** (step - 4)
        keep("adamw", **{f"g{step}": parameter.grad})
        optimizer.step()
        keep("adamw", **{f"p{step}": parameter})


def clip():
    tensors = [torch.randn(3, 4), torch.randn(5)]
    parameters = [torch.nn.Parameter(torch.zeros_like(one)) for one in tensors]
    for parameter, gradient in zip(parameters, tensors):
        parameter.grad = gradient.clone()
    norm = torch.nn.utils.clip_grad_norm_(parameters, 1.5)
    keep("clip", a=tensors[0], b=tensors[1], norm=norm.reshape(1), a_clipped=parameters[0].grad,
         b_clipped=parameters[1].grad)


def attention(step, inputs, mask, **arguments):
    module = torch.nn.MultiheadAttention(12, 3, batch_first=True, **arguments)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    out, weights = module(*inputs, attn_mask=mask, average_attn_weights=True)
    dout, dweights = torch.randn_like(out), torch.randn_like(weights)
    ((out * dout).sum() + (weights * dweights).sum()).backward()
    keep(step, out=out, dout=dout, weights=weights, dweights=dweights)
    for name, parameter in module.named_parameters():
        kept[f"{step}/{name}"] = parameter.detach().clone()
        kept[f"{step}/d{name}"] = parameter.grad.clone()


def attentions():
    x = leaf(2, 6, 12)
    attention("mha", (x, x, x), torch.triu(torch.ones(6, 6, dtype=torch.bool), 1), add_bias_kv=True)
    keep("mha", x=x, dx=x.grad)
    q, k, v = leaf(2, 5, 12), leaf(2, 7, 4), leaf(2, 7, 8)
    attention("cross", (q, k, v), None, kdim=4, vdim=8)
    keep("cross", q=q, k=k, v=v, dq=q.grad, dk=k.grad, dv=v.grad)


if __name__ == "__main__":
    for make in (linear, layer_norm, gelu, cross_entropy, adamw, clip, attentions):
        make()
    FILE.parent.mkdir(exist_ok=True)
    save_file(kept, FILE)
    print(f"{FILE.name}: {len(kept)} tensors, {FILE.stat().st_size} bytes")
