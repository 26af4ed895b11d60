"""Hugging Face transformers with rapt's attention.

    import rapt.transformers
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="rapt")

Importing this module registers the name "rapt" with transformers, for attention and for its masks; for an existing
model, call model.set_attn_implementation("rapt"). A model that does not use transformers' attention interface is
refused with a ValueError that names its class. Grouped heads, sliding windows, softcap, sinks, position bias, padding,
any cache, dropout and training work; tensors are on the CPU, in float32, bfloat16, float16 or float64.
"""

from .bridges.transformers.attention import attention_forward, attention_mask, register
from .bridges.transformers.models import refuse_models_that_cannot_be_served

__all__ = ["attention_forward", "attention_mask", "register"]

# These names appear as part of this module when printed or pickled.
for _public in (attention_forward, attention_mask, register):
    _public.__module__ = __name__
del _public

refuse_models_that_cannot_be_served(attention_forward)
register()
