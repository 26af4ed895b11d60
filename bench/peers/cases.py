"""The cases on which rapt and its peers are timed, and the inputs of a case."""

import dataclasses

import ml_dtypes
import numpy
import torch

TYPES = {"f32": numpy.float32, "bf16": ml_dtypes.bfloat16, "f16": numpy.float16}


@dataclasses.dataclass(frozen=True)
class Case:
    batch: int = 1
    heads: int = 8
    length: int = 1024  # the number of queries
    dim: int = 64
    causal: bool = False  # if there are more or fewer keys, the last query sees the last key
    window: tuple = None  # (left, right)
    mask: str = None  # "bool" or "float", full size: (B, H, L, L)
    kv_heads: int = None  # default: as many as heads
    keys: int = None  # default: as many as queries
    dtype: str = "f32"
    weights: bool = False  # also computes their mean over heads, (B, L, L)

    def __post_init__(self):
        object.__setattr__(self, "kv_heads", self.kv_heads or self.heads)
        object.__setattr__(self, "keys", self.keys or self.length)

    def inputs(self):
        return Inputs(self)

    @property
    def name(self):
        """The name in the format of `rapt bench`."""
        text = f"b{self.batch} h{self.heads}"
        if self.kv_heads != self.heads:
            text += f"/{self.kv_heads}"
        text += f" n{self.length}" if self.keys == self.length else f" q{self.length} k{self.keys}"
        text += f" d{self.dim}"
        if self.dtype != "f32":
            text += f" {self.dtype}"
        if self.causal:
            text += " causal"
        if self.window:
            text += " window {},{}".format(*self.window)
        return text + (f" {self.mask} mask" if self.mask else "") + (" mean weights" if self.weights else "")

    @property
    def flops(self):
        """Useful work: that of the pairs that causal and window leave visible."""
        places = numpy.arange(self.length) + self.keys - self.length
        first, last = numpy.zeros_like(places), numpy.full_like(places, self.keys - 1)
        if self.causal:
            last = places
        if self.window:
            first = numpy.maximum(first, places - self.window[0])
            last = numpy.minimum(last, places + self.window[1])
        return 4.0 * self.batch * self.heads * self.dim * float((last - first + 1).sum())

    @property
    def bytes(self):
        """The size of keys and values."""
        return 2 * self.batch * self.kv_heads * self.keys * self.dim * numpy.dtype(TYPES[self.dtype]).itemsize


class Inputs:
    """q, k and v as (B, H, L, D), and the mask of the case, if it has one."""

    def __init__(self, case):
        random = numpy.random.default_rng(1)

        def numbers(heads, length):
            shape = (case.batch, heads, length, case.dim)
            return random.standard_normal(shape, dtype=numpy.float32).astype(TYPES[case.dtype], copy=False)

        self.q = numbers(case.heads, case.length)
        self.k, self.v = numbers(case.kv_heads, case.keys), numbers(case.kv_heads, case.keys)
        plane = (case.batch, case.heads, case.length, case.keys)
        self.mask = None
        if case.mask == "bool":  # one key in sixteen is hidden
            self.mask = random.integers(0, 16, plane, dtype=numpy.uint8) != 0
        elif case.mask == "float":
            self.mask = random.standard_normal(plane, dtype=numpy.float32)

    @staticmethod
    def window_mask(case):
        """The mask for peers without a window option: (L, L), true where a key is seen."""
        place = numpy.arange(case.length)
        distance = place[None, :] - place[:, None]
        return (distance >= -case.window[0]) & (distance <= case.window[1])


@dataclasses.dataclass(frozen=True)
class LayerCase:
    """A multi-head self-attention layer in f32, without biases of q, k and v, with a bias of the output."""

    batch: int = 8
    length: int = 1024
    embed: int = 768
    heads: int = 12
    causal: bool = True
    weights: bool = False  # also computes their mean over heads, (B, L, L)
    dtype: str = "f32"
    dropout = 0.0  # none outside training

    def inputs(self):
        return LayerInputs(self)

    @property
    def dim(self):
        return self.embed // self.heads

    @property
    def name(self):
        text = f"layer b{self.batch} n{self.length} e{self.embed} h{self.heads}"
        return text + (" causal" if self.causal else "") + (" mean weights" if self.weights else "")

    @property
    def flops(self):
        """Useful work: four projections, and the pairs that causal leaves visible."""
        pairs = self.length * (self.length + 1) / 2 if self.causal else self.length**2
        return self.batch * (8.0 * self.length * self.embed**2 + 4.0 * self.embed * pairs)

    @property
    def bytes(self):
        """The size of the parameters."""
        return 4 * (4 * self.embed**2 + self.embed)


class LayerInputs:
    """x as (B, L, E), and parameters with the initial values of PyTorch's layer."""

    def __init__(self, case):
        torch.manual_seed(1)
        self.x = torch.randn(case.batch, case.length, case.embed)
        self.module = torch.nn.MultiheadAttention(case.embed, case.heads, bias=False, batch_first=True).eval()
        self.module.out_proj.bias = torch.nn.Parameter(torch.randn(case.embed))


@dataclasses.dataclass(frozen=True)
class BackwardCase:
    """dq, dk and dv of attention in f32, from forward's results."""

    batch: int = 1
    heads: int = 8
    length: int = 1024
    dim: int = 64
    causal: bool = False
    dtype: str = "f32"

    def inputs(self):
        return BackwardInputs(self)

    @property
    def forward(self):
        return Case(self.batch, self.heads, self.length, self.dim, self.causal)

    @property
    def name(self):
        return self.forward.name + " backward"

    @property
    def flops(self):
        """Backward has five products; forward has two."""
        return 2.5 * self.forward.flops

    @property
    def bytes(self):
        return self.forward.bytes


class BackwardInputs:
    """q, k, v and dout as (B, H, L, D)."""

    def __init__(self, case):
        torch.manual_seed(1)
        self.q, self.k, self.v, self.dout = (
            torch.randn(case.batch, case.heads, case.length, case.dim) for _ in range(4))


@dataclasses.dataclass(frozen=True)
class TrainingCase(LayerCase):
    """Forward and backward of the layer, to its input and its parameters."""

    dropout: float = 0.0

    def inputs(self):
        return TrainingInputs(self)

    @property
    def name(self):
        return super().name + " training" + (f" dropout {self.dropout}" if self.dropout else "")

    @property
    def flops(self):
        """Backward has two products per projection instead of one, and five per pair instead of two."""
        projections = 8.0 * self.batch * self.length * self.embed**2
        return 3.0 * projections + 3.5 * (super().flops - projections)


class TrainingInputs(LayerInputs):
    """The inputs of LayerCase, and dout as (B, L, E)."""

    def __init__(self, case):
        super().__init__(case)
        self.dout = torch.randn(self.x.shape)
        self.x.requires_grad_()
        self.module.dropout = case.dropout
        self.module.train()


@dataclasses.dataclass(frozen=True)
class Group:
    """Cases that alternate in the same rounds, so that they can also be compared with each other."""

    about: str  # the topic of the group, used by goals and tables
    cases: tuple
    threads: tuple = (1, 2)
    peers: tuple = ("PyTorch", "ONNX Runtime")
    most_rounds: int = 100


def in_every_type(case):
    return tuple(dataclasses.replace(case, dtype=dtype) for dtype in TYPES)


def groups(quick):
    """All groups. With `quick` their cases are small, to try the scripts."""
    lengths, dims, long = ([64], [32], 256) if quick else ([512, 1024, 2048, 4096], [64, 128], 8192)
    found = [Group("lengths", (Case(8, 12, 128, 64), Case(8, 12, 128, 64, causal=True)))]
    for dim in dims:
        for length in lengths:
            case = Case(1, 8, length, dim)
            found.append(Group("lengths", (case, dataclasses.replace(case, causal=True))))
    for dim in dims:
        case = Case(1, 8, long // 4, dim)
        masked = tuple(dataclasses.replace(case, mask=mask) for mask in ("bool", "float"))
        found.append(Group("masks", (case, *masked), threads=(1,)))
    # ONNX Runtime keeps all scores of a call, which would be gigabytes here.
    case = Case(1, 8, long, 64)
    window = dataclasses.replace(case, window=(long // 32, 0))
    found.append(Group("window", (case, window), threads=(1,), peers=("PyTorch",)))

    decoding = Case(1, 32, 1, 128, kv_heads=8, keys=4 * long)
    found.append(Group("decoding", in_every_type(decoding), peers=("PyTorch", "PyTorch, folded")))
    for dim in dims:
        case = Case(1, 8, long // 4, dim)
        for causal in (False, True):
            found.append(Group("16 bits", in_every_type(dataclasses.replace(case, causal=causal)), peers=("PyTorch",)))
    case = Case(1, 12, long // 8, 64)
    found.append(Group("weights", (case, dataclasses.replace(case, weights=True)), peers=("PyTorch",)))

    for dim in dims:
        for length in lengths:
            case = BackwardCase(1, 8, length, dim)
            found.append(Group("backward", (case, dataclasses.replace(case, causal=True)), peers=("PyTorch",),
                               most_rounds=7))
    for length in lengths[1:] or lengths:
        case = BackwardCase(1, 1, length, dims[0])
        found.append(Group("backward of one head", (case, dataclasses.replace(case, causal=True)), threads=(2,),
                           peers=("PyTorch",)))

    # Ways to build the layer. A call takes half a second, or two seconds with the plain formula, so a few rounds
    # suffice.
    layer = LayerCase(2, 64, 64, 4) if quick else LayerCase()
    found.append(Group("layer", (layer,), peers=("PyTorch",), most_rounds=5))
    found.append(Group("layer with weights", (dataclasses.replace(layer, weights=True),), peers=("PyTorch",),
                       most_rounds=5))
    found.append(Group("layer as classes", (layer,), threads=(1,), peers=("PyTorch, SDPA", "PyTorch, plain formula"),
                       most_rounds=3))
    sizes = (layer.batch, layer.length, layer.embed, layer.heads)
    for dropout in (0.0, 0.1):
        found.append(Group("training with dropout" if dropout else "training", (TrainingCase(*sizes, dropout=dropout),),
                           peers=("PyTorch", "PyTorch, SDPA"), most_rounds=5 if dropout else 9))
    return found
