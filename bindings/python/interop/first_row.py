"""Follows the first token's row through a model: which step changes its bits when only later tokens differ?"""

import collections
import unittest.mock

import any_model
import torch

import rapt.transformers  # noqa: F401
from rapt.bridges.transformers import attention as attention_module

# A call of a module, or of rapt's attention if module is None: the first token's row before and after.
Step = collections.namedtuple("Step", "module inputs outputs")


def follow(model, batch):
    """(the model's output, {(module, number of its call): Step} in the order in which the calls end)."""
    steps, numbers = {}, collections.Counter()
    tokens = batch["input_ids"].shape
    compute = attention_module.attend

    def note(module, inputs, outputs):
        if inputs and outputs:
            steps[module, numbers[module]] = Step(module, inputs, outputs)
        numbers[module] += 1

    def attention(query, key, value, *masks, **options):
        found = compute(query, key, value, *masks, **options)
        # Row 0 sees only key 0.
        note(None, [x[:, :, 0].clone() for x in (query, key, value)], [found[0][:, :, 0].clone()])
        return found

    def after(module, args, named, outputs):
        note(module, list(_rows([args, named], tokens)), list(_rows(outputs, tokens)))

    hooks = [x.register_forward_hook(after, with_kwargs=True) for x in model.modules()]
    try:
        with unittest.mock.patch.object(attention_module, "attend", attention):
            return any_model.answer(model, batch), steps
    finally:
        for hook in hooks:
            hook.remove()


def _rows(x, tokens):
    """The first token's rows, of the tensors in x that are (batch, tokens, …) or (batch · tokens, …)."""
    if isinstance(x, torch.Tensor):
        if x.shape[:2] == tokens:
            yield x[:, 0].clone()
        elif x.dim() > 1 and len(x) == tokens.numel():
            yield x.unflatten(0, tokens)[:, 0].clone()
    elif isinstance(x, (dict, list, tuple)):
        for each in x.values() if isinstance(x, dict) else x:
            yield from _rows(each, tokens)


def changes(steps, others):
    """The modules whose row had the same bits as input in both runs and different bits as output; None is rapt."""
    return [
        step.module
        for call, step in steps.items()
        if call in others and _same(step.inputs, others[call].inputs) and not _same(step.outputs, others[call].outputs)
    ]


def _same(rows, others):
    return len(rows) == len(others) and all(map(torch.equal, rows, others))


def is_of_experts(module):
    """Whether the module is the experts of a model, or calls them. JetMoe's attention does: its queries come from
    experts."""
    parts = [("", module), *module.named_children()]
    return any("expert" in f"{name} {type(x).__name__}".lower() for name, x in parts)
