"""Builds a small instance of any model class of transformers: a configuration with reduced sizes, and matching inputs.

There are no special cases for models. Sizes are found by their names in the configuration, and a few combinations of
sizes and inputs are tried. A model that cannot be created or run with any of them raises CannotMake, which the caller
counts.
"""

import copy
import inspect
import re

import torch
from transformers import initialization

HEADS, HEAD_SIZE, TOKENS, PICTURE, VOCABULARY = 4, 16, 12, 32, 96
MOST_PARAMETERS = 20_000_000

# Patterns of the names of sizes in configurations, with the maximum for each. The first match counts.
_COUNTS = [
    (r"vocab_size$|num_embeddings$", VOCABULARY),
    (r"(num|n|encoder|decoder)_.*layers?$|^n_layers?$|^layers$|num_blocks$|^depth$", 2),
    (r"max_.*position|n_positions|n_ctx|max_seq_len", 128),
    (r"image_size$", PICTURE),
    (r"patch_size$", 8),
    (r"num_.*experts$|n_routed_experts$", 4),
    (r"experts_per_tok$|top_?k$|_k$", 2),
    (r"sliding_window$|attention_chunk_size$|attention_window$", 6),
]
_WIDTHS = [
    (r"(num|n|encoder|decoder)_.*heads$|^n_heads?$|^heads$|multi_query_group_num", HEADS),
    (r"head_dim$|head_size$|^d_kv$", HEAD_SIZE),
    (r"hidden_size$|d_model$|n_embd$|embed_dim$|^dim$|^emb_dim$|hidden_dim$|embedding_size$|projection_dim$|_hidden$",
     HEADS * HEAD_SIZE),
    (r"intermediate_size$|ffn_dim$|d_ff$|n_inner$|mlp_dim$|ffn_hidden_size$|_lora_rank$|feedforward$",
     HEADS * HEAD_SIZE),
]  # fmt: skip
_KEY_HEADS = r"num_(key_value|kv)_heads$|n_kv_heads$"
# The ways to reduce the sizes: narrow widths with half as many key heads as heads; narrow widths with as many; and the
# original widths, for models whose widths depend on each other.
_WAYS = [[(_KEY_HEADS, HEADS // 2), *_COUNTS, *_WIDTHS], [*_COUNTS, *_WIDTHS], _COUNTS]


class CannotMake(Exception):
    """The model cannot be created with any of the known combinations."""


def configurations(config_class):
    """Small configurations, smallest first."""
    for sizes in _WAYS:
        yield _shrink(config_class(), sizes)


def _shrink(config, sizes):
    for name in config.sub_configs:
        if hasattr(inner := getattr(config, name, None), "sub_configs"):
            _shrink(inner, sizes)
    for name, value in list(vars(config).items()):
        if not isinstance(value, int) or isinstance(value, bool):
            continue
        if name.endswith(("token_id", "token_index")):
            setattr(config, name, min(value, VOCABULARY - 2))
        elif (most := next((most for pattern, most in sizes if re.search(pattern, name)), value)) < value:
            setattr(config, name, most)
    kinds, layers = getattr(config, "layer_types", None), getattr(config, "num_hidden_layers", None)
    if isinstance(kinds, list) and isinstance(layers, int):
        one_of_each = list(dict.fromkeys(kinds))
        config.layer_types = (one_of_each + kinds)[:layers]
    return config


def make(model_class, config, implementation):
    """The model with an attention implementation, and weights with which every part of it affects the result."""
    with torch.device("meta"), initialization.no_init_weights():
        size = sum(x.numel() for x in model_class(copy.deepcopy(config)).parameters())
    if size > MOST_PARAMETERS:
        raise CannotMake(f"{size} parameters")
    torch.manual_seed(0)
    model = model_class._from_config(copy.deepcopy(config), attn_implementation=implementation).eval()
    with torch.no_grad():
        for x in model.parameters():
            if x.dim() > 1 and x.is_floating_point():
                x.normal_(std=x[0].numel() ** -0.5)
    return model


def batches(model):
    """Inputs for a model's forward, in all known forms. One row of tokens is padded on the right."""
    torch.manual_seed(1)
    taken, config = inspect.signature(model.forward).parameters, model.config
    main = model.main_input_name
    given = {}
    if "input_ids" in taken:
        given["input_ids"] = _tokens()
        if "attention_mask" in taken:
            given["attention_mask"] = torch.ones(2, TOKENS, dtype=torch.long)
            given["attention_mask"][0, -3:] = 0
    if "decoder_input_ids" in taken:
        given["decoder_input_ids"] = _tokens()
    if "input_ids" in given and main == "input_ids":
        yield given
    if "pixel_values" in taken:
        vision = getattr(config, "vision_config", config)
        size = getattr(vision, "image_size", PICTURE)
        size = tuple(size) if isinstance(size, (list, tuple)) else (size, size)
        channels = getattr(vision, "num_channels", 3)
        yield given | {"pixel_values": torch.randn(2, channels, *size)}
        frames = getattr(vision, "num_frames", 2)
        yield given | {"pixel_values": torch.randn(2, frames, channels, *size)}
    if main == "input_values":
        yield given | {main: torch.randn(2, 4000)}
    if main == "input_features":
        names = ("num_mel_bins", "input_feat_per_channel", "feature_size", "input_dim", "n_mels")
        bins = next((getattr(config, name) for name in names if hasattr(config, name)), 80)
        length = 2 * getattr(config, "max_source_positions", 32)
        for shape in ((2, bins, length), (2, length, bins)):
            yield given | {main: torch.randn(shape)}


def _tokens():
    return torch.randint(3, VOCABULARY - 4, (2, TOKENS))


def answer(model, batch):
    """A model's logits or last hidden states, or else its first tensor of numbers."""
    torch.manual_seed(2)  # some models mask patches at random
    with torch.no_grad():
        found = model(**batch)
    named = [found.get(name) for name in ("logits", "last_hidden_state")]
    for x in [*named, *found.values()]:
        x = x[0] if isinstance(x, (list, tuple)) and x else x
        if isinstance(x, torch.Tensor) and x.is_floating_point() and x.numel():
            return x
    raise CannotMake(f"no tensor among {', '.join(found)}")
