"""Shared by the tests of rapt.torch: PyTorch's results in double, its own errors, and rapt's dropout masks."""

import contextlib

import rapt
import torch
import torch.nn.functional as F

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def as_double(x):
    """Converts float tensors, also in lists and dicts, to float64 leaf tensors."""
    if isinstance(x, (list, tuple)):
        return type(x)(as_double(y) for y in x)
    if isinstance(x, dict):
        return {name: as_double(y) for name, y in x.items()}
    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        return x
    return x.detach().double().requires_grad_(x.requires_grad)


def leaf(x):
    """Like `as_double`, but keeps the dtype."""
    if isinstance(x, (list, tuple)):
        return type(x)(leaf(y) for y in x)
    if isinstance(x, dict):
        return {name: leaf(y) for name, y in x.items()}
    return x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x


def require_gradients(x):
    """Makes every float tensor require gradients."""
    if isinstance(x, (list, tuple)):
        for y in x:
            require_gradients(y)
    elif isinstance(x, dict):
        require_gradients(list(x.values()))
    elif isinstance(x, torch.Tensor) and x.is_floating_point():
        x.requires_grad_()


def leaves(x):
    """All tensors in lists and dicts that require gradients, in order."""
    if isinstance(x, (list, tuple)):
        return [z for y in x for z in leaves(y)]
    if isinstance(x, dict):
        return leaves(list(x.values()))
    return [x] if isinstance(x, torch.Tensor) and x.requires_grad else []


def answers(function, args, kwargs, parameters=()):
    """(outputs, gradients) of a call. The upstream gradients of its outputs are random, and the same for each dtype."""
    inputs = [*leaves(args), *leaves(kwargs), *parameters]
    outputs = function(*args, **kwargs)
    outputs = [x for x in (outputs if isinstance(outputs, tuple) else (outputs,)) if x is not None]
    generator = torch.Generator().manual_seed(11)
    arrived = [torch.randn(x.shape, generator=generator).to(x.dtype) for x in outputs]
    pairs = [(x, dx) for x, dx in zip(outputs, arrived) if x.requires_grad]
    gradients = torch.autograd.grad([x for x, _ in pairs], inputs, [dx for _, dx in pairs], allow_unused=True)
    return outputs, gradients


class Errors:
    """Errors of rapt and of PyTorch in the same dtype, relative to PyTorch's results in double, over many samples.

    The error of a tensor is its maximum error divided by the largest number of all outputs, or all gradients, of the
    call: some gradients are only what remains when large numbers cancel. For each result of a call (out, the gradient
    of the query and so on), rapt's error may be twice PyTorch's maximum error over all samples, plus one rounding of
    the largest number. In a single sample with few numbers, PyTorch may be exact by chance.
    """

    def __init__(self, dtype):
        self.rounding = torch.finfo(dtype).eps / 2
        self.found = {}  # per result: (sample, rapt's error, PyTorch's error)

    def add(self, sample, kind, ours, theirs, exact):
        assert len(ours) == len(theirs) == len(exact) > 0
        largest = max((float(x.detach().abs().max()) for x in exact if x is not None and x.numel()), default=1.0)
        for n, (mine, peer, true) in enumerate(zip(ours, theirs, exact)):
            assert (mine is None) == (peer is None), (sample, kind, n)
            if mine is None:
                continue
            assert mine.shape == peer.shape and mine.dtype == peer.dtype, (sample, kind, n)
            assert torch.equal(mine.isnan(), peer.isnan()), (sample, kind, n)
            if mine.dtype == torch.float64:  # the reference is PyTorch's result itself
                torch.testing.assert_close(mine, peer, msg=lambda text: f"{sample}, {kind} {n}: {text}")
            elif mine.numel():
                distances = [float((x.double() - true).detach().abs().max()) / largest for x in (mine, peer)]
                self.found.setdefault((kind, n), []).append((sample, *distances))

    def check(self):
        for result, found in self.found.items():
            allowed = 2 * max(peer for *_, peer in found) + self.rounding
            sample, worst, _ = max(found, key=lambda one: one[1])
            assert worst <= allowed, f"{result} of {sample}: {worst:.3e} where {allowed:.3e} is allowed"


def kept(rate, shape, seed):
    """True where rapt keeps a weight, (B, H, Lq, Lk), after torch.manual_seed(seed)."""
    torch.manual_seed(seed)
    drawn = int(torch.randint(2**63 - 1, ()))
    batch, heads, queries, keys = shape
    x, y = torch.zeros(batch, heads, queries, 1), torch.zeros(batch, heads, keys, 1)
    return rapt.attention(x, y, y, dropout=(rate, drawn), return_weights=True).weights > 0


@contextlib.contextmanager
def dropping(keep, monkeypatch):
    """Makes PyTorch's dropout drop the same weights as rapt's."""
    with monkeypatch.context() as patch:
        patch.setattr(F, "dropout", lambda x, p: x * keep.reshape(x.shape) / (1 - p))
        yield
