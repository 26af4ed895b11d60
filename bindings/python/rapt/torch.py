"""rapt in PyTorch: attention that is part of the autograd graph, and of compiled graphs.

    import rapt.torch
    out = rapt.torch.sdpa(query, key, value, is_causal=True)

Importing rapt.torch imports PyTorch; importing rapt does not.
"""

from .bridges.torch.calls import Calls, calls
from .bridges.torch.enable import Enabled, enable, enabled
from .bridges.torch.multihead import MultiheadAttention, multi_head_attention_forward
from .bridges.torch.sdpa import sdpa

__all__ = [
    "Calls",
    "Enabled",
    "MultiheadAttention",
    "calls",
    "enable",
    "enabled",
    "multi_head_attention_forward",
    "sdpa",
]

# These names appear as part of this module when printed or pickled.
for _public in (Calls, Enabled, MultiheadAttention, calls, enable, enabled, multi_head_attention_forward, sdpa):
    _public.__module__ = __name__
del _public
