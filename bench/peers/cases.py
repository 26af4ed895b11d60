"""The cases that rapt and its peers are timed on, and the inputs of a case."""

import dataclasses

import numpy


@dataclasses.dataclass(frozen=True)
class Case:
    batch: int = 1
    heads: int = 8
    length: int = 1024
    dim: int = 64
    causal: bool = False
    window: tuple = None  # (left, right)
    mask: str = None  # "bool" or "float", of full size: (B, H, L, L)

    @property
    def name(self):
        text = f"b{self.batch} h{self.heads} n{self.length} d{self.dim}"
        if self.causal:
            text += " causal"
        if self.window:
            text += " window {},{}".format(*self.window)
        return text + (f" {self.mask} mask" if self.mask else "")

    @property
    def flops(self):
        """Of useful work: pairs that causal and window leave visible."""
        places = numpy.arange(self.length)
        first, last = numpy.zeros_like(places), numpy.full_like(places, self.length - 1)
        if self.causal:
            last = places
        if self.window:
            first = numpy.maximum(first, places - self.window[0])
            last = numpy.minimum(last, places + self.window[1])
        return 4.0 * self.batch * self.heads * self.dim * float((last - first + 1).sum())


class Inputs:
    """q, k, v as (B, H, L, D), and the masks that the case's options amount to."""

    def __init__(self, case):
        random = numpy.random.default_rng(1)
        shape = (case.batch, case.heads, case.length, case.dim)
        self.q, self.k, self.v = (random.standard_normal(shape, dtype=numpy.float32) for _ in range(3))
        plane = (case.batch, case.heads, case.length, case.length)
        self.mask = None
        if case.mask == "bool":  # one key in sixteen is hidden
            self.mask = random.integers(0, 16, plane, dtype=numpy.uint8) != 0
        elif case.mask == "float":
            self.mask = random.standard_normal(plane, dtype=numpy.float32)

    @staticmethod
    def window_mask(case):
        """For a peer that knows no window: true where a key is seen, (L, L)."""
        place = numpy.arange(case.length)
        distance = place[None, :] - place[:, None]
        return (distance >= -case.window[0]) & (distance <= case.window[1])


@dataclasses.dataclass(frozen=True)
class Group:
    """Cases that take turns in the same rounds, so that they can be compared with one another too."""

    cases: tuple
    threads: tuple = (1, 2)
    peers: tuple = ("PyTorch", "ONNX Runtime")


def groups(quick):
    """All groups; `quick`: small ones of every kind, to try the scripts."""
    lengths, dims, long = ([64], [32], 256) if quick else ([512, 1024, 2048, 4096], [64, 128], 8192)
    found = [Group((Case(8, 12, 128, 64), Case(8, 12, 128, 64, causal=True)))]
    for dim in dims:
        for length in lengths:
            case = Case(1, 8, length, dim)
            found.append(Group((case, dataclasses.replace(case, causal=True))))
    for dim in dims:
        case = Case(1, 8, long // 4, dim)
        masked = tuple(dataclasses.replace(case, mask=mask) for mask in ("bool", "float"))
        found.append(Group((case, *masked), threads=(1,)))
    # ONNX Runtime keeps all scores of a call: here that would be gigabytes.
    case = Case(1, 8, long, 64)
    found.append(Group((case, dataclasses.replace(case, window=(long // 32, 0))), threads=(1,), peers=("PyTorch",)))
    return found
