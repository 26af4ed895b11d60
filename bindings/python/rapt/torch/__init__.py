"""rapt in PyTorch: attention that is part of the graph, and of compiled ones.

    import rapt.torch
    out = rapt.torch.sdpa(query, key, value, is_causal=True)

Importing this imports PyTorch; importing rapt does not.
"""

from ._calls import Calls, calls
from ._enable import Enabled, enable, enabled
from ._multihead import MultiheadAttention, multi_head_attention_forward
from ._sdpa import sdpa

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
