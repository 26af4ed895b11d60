"""Which models of transformers rapt supports.

An attention implementation gets a model's masks and its attention through two interfaces of transformers. A model that
uses the mask interface but implements attention itself would silently lose its mask; one with a special case for each
implementation that it knows by name would take the wrong branch for rapt. Both are refused when they are created and
when they are switched to rapt.
"""

import functools
import inspect
import re
import sys

from transformers import AttentionInterface, PreTrainedModel

# Code that compares the implementation with "sdpa", or uses it as a key of a lookup. Such a special case would not
# apply to rapt. A comparison with only "eager" is harmless.
_ASKS_BY_NAME = re.compile(
    r"""_attn_implementation\s*(?:[!=]=|(?:not\s+)?in\b)[^:\n]*["']sdpa["']|(?<!FUNCTIONS)\[[\w.]*_attn_implementation\]"""
)
_CALLS_INTERFACE = re.compile(r"ALL_ATTENTION_FUNCTIONS(?:\.get_interface\(|\[)")
_WRITES_ATTENTION = re.compile(r"^class \w*Attention\w*\(nn\.Module\):", re.MULTILINE)
_HAS_ATTENTION = re.compile(r"^class \w*Attention\w*\(", re.MULTILINE)


def refuse_models_that_cannot_be_served(attention):
    """From now on, raises an error for models that cannot use the implementation `attention`."""
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
        # If a model cannot be switched, transformers only warns, and leaves it unchanged.
        asked = dict(_asked(self.config, attn_implementation))
        for module in self.modules():
            if isinstance(module, PreTrainedModel):
                require_served(module, asked.get(id(module.config)))
        return change(self, attn_implementation, *args, **kwargs)

    PreTrainedModel.get_correct_attn_implementation = get_correct_attn_implementation
    PreTrainedModel.set_attn_implementation = set_attn_implementation


def _asked(config, request):
    """(id of a configuration, its requested implementation) for config and its sub-configs. A request that is a dict
    gives the implementations by name of the sub-config."""
    yield id(config), request.get("") if isinstance(request, dict) else request
    for name in config.sub_configs:
        if (inner := getattr(config, name, None)) is not None:
            yield from _asked(inner, request.get(name) if isinstance(request, dict) else request)


@functools.cache
def why_not(model_class):
    """Why a model is not supported, as a part of a sentence; None if it is.

    The class declares what it supports, and its source file shows how attention is implemented; transformers itself
    uses the same two sources. A model without attention, such as the convolutions inside another, is accepted.
    """
    models = [x for x in model_class.__mro__ if issubclass(x, PreTrainedModel) and x is not PreTrainedModel]
    files = dict.fromkeys(map(_source, models))
    # Each file is checked by itself, because a base class's file does not show attention that another file implements.
    if any(_WRITES_ATTENTION.search(source) and not _CALLS_INTERFACE.search(source) for source in files):
        return "it implements attention itself and does not call transformers' attention interface"
    supported = model_class._supports_sdpa or model_class._supports_flash_attn or model_class._supports_flex_attn
    if not supported and any(map(_HAS_ATTENTION.search, files)):
        return "transformers declares that it supports only eager attention"
    if any(map(_ASKS_BY_NAME.search, files)):
        return 'its code has a special case for "sdpa" that other implementations do not get'
    return None


def _source(model_class):
    """The source of the file that defines a class. Empty for a class defined in an interpreter; the files of its base
    classes are checked too."""
    try:
        return inspect.getsource(sys.modules[model_class.__module__])
    except (KeyError, OSError, TypeError):
        return ""
