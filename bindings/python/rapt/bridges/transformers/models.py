"""Which models of transformers rapt can serve.

An attention implementation gets a model's masks and its attention through two interfaces of transformers. A model that
makes its mask through the one and writes its attention out would lose its mask without a word; one that does something
else for each implementation that it knows by name would do the wrong thing for ours. Both are refused when they are
made, and when they are to change over.
"""

import functools
import inspect
import re
import sys

from transformers import AttentionInterface, PreTrainedModel

# Where a model asks which implementation it runs on, and "sdpa" is among the answers, or looks something up by it: what
# it does or finds then, it would not do or find for rapt. Asking for "eager" alone is harmless, since rapt is not that.
_ASKS_BY_NAME = re.compile(
    r"""_attn_implementation\s*(?:[!=]=|(?:not\s+)?in\b)[^:\n]*["']sdpa["']|(?<!FUNCTIONS)\[[\w.]*_attn_implementation\]"""
)
_CALLS_INTERFACE = re.compile(r"ALL_ATTENTION_FUNCTIONS(?:\.get_interface\(|\[)")
_WRITES_ATTENTION = re.compile(r"^class \w*Attention\w*\(nn\.Module\):", re.MULTILINE)
_HAS_ATTENTION = re.compile(r"^class \w*Attention\w*\(", re.MULTILINE)


def refuse_models_that_cannot_be_served(attention):
    """From now on, an error is raised for a model that cannot use the implementation `attention`."""
    check, change = PreTrainedModel.get_correct_attn_implementation, PreTrainedModel.set_attn_implementation

    def require_served(model, name):
        if isinstance(name, str) and AttentionInterface().get(name) is attention and (why := why_not(type(model))):
            raise ValueError(
                f'rapt: {type(model).__name__} was asked to run with attn_implementation="{name}"; {why}. '
                'Use attn_implementation="eager" for it'
            )

    @functools.wraps(check)
    def get_correct_attn_implementation(self, requested_attention, *args, **kwargs):
        require_served(self, requested_attention)
        return check(self, requested_attention, *args, **kwargs)

    @functools.wraps(change)
    def set_attn_implementation(self, attn_implementation, *args, **kwargs):
        # transformers only warns of a model that it cannot change over, and leaves it as it was.
        asked = dict(_asked(self.config, attn_implementation))
        for module in self.modules():
            if isinstance(module, PreTrainedModel):
                require_served(module, asked.get(id(module.config)))
        return change(self, attn_implementation, *args, **kwargs)

    PreTrainedModel.get_correct_attn_implementation = get_correct_attn_implementation
    PreTrainedModel.set_attn_implementation = set_attn_implementation


def _asked(config, request):
    """(id of a configuration, what is asked for it), of config and of those in it. A dict asks for each by its name."""
    yield id(config), request.get("") if isinstance(request, dict) else request
    for name in config.sub_configs:
        if (inner := getattr(config, name, None)) is not None:
            yield from _asked(inner, request.get(name) if isinstance(request, dict) else request)


@functools.cache
def why_not(model_class):
    """Why a model cannot be served, as a part of a sentence; None where it can.

    A class says what it supports, and the file it is in how its attention is written; transformers decides by the same.
    A model without attention, such as the convolutions inside another, is left alone.
    """
    models = [x for x in model_class.__mro__ if issubclass(x, PreTrainedModel) and x is not PreTrainedModel]
    files = dict.fromkeys(map(_source, models))
    # Each file by itself: that of a base class says nothing of an attention written in another.
    if any(_WRITES_ATTENTION.search(source) and not _CALLS_INTERFACE.search(source) for source in files):
        return "it implements attention itself and does not call transformers' attention interface"
    supported = model_class._supports_sdpa or model_class._supports_flash_attn or model_class._supports_flex_attn
    if not supported and any(map(_HAS_ATTENTION.search, files)):
        return "transformers declares that it supports only eager attention"
    if any(map(_ASKS_BY_NAME.search, files)):
        return 'its code has a special case for "sdpa" that other implementations do not get'
    return None


def _source(model_class):
    """The file that it is in. Empty for a class that was typed into an interpreter: those it is made of have one."""
    try:
        return inspect.getsource(sys.modules[model_class.__module__])
    except (KeyError, OSError, TypeError):
        return ""
