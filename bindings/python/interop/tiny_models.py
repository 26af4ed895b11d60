"""Small models of transformers with random weights: one for each way in which a model uses attention."""

import copy
import dataclasses
from collections.abc import Callable

import torch
import transformers

VOCABULARY = 96
DECODER = {"vocab_size": VOCABULARY, "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 3,
           "num_attention_heads": 4, "max_position_embeddings": 256, "initializer_range": 0.15,
           "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Tiny:
    """A model and its inputs."""

    name: str
    kind: type
    config: Callable
    inputs: str = "tokens"  # or "pixels", "tokens to tokens"
    generates: bool = True

    def make(self, seed=0, **changes):
        """The model with its eager attention."""
        torch.manual_seed(seed)
        model = self.kind._from_config(
            self.config(**changes), attn_implementation="eager", experts_implementation="eager"
        )
        # Weights with constant initial values would leave parts untested.
        for parameter_name, parameter in model.named_parameters():
            if parameter_name.endswith(("sinks", "relative_attention_bias.weight")):
                torch.nn.init.normal_(parameter)
        if self.inputs == "tokens to tokens":  # if tied to the embedding, the output would repeat every token
            model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.lm_head.weight))
        return model.eval()

    def batch(self, padding=None, rows=3, length=21, seed=1):
        """Inputs by name, including labels. padding: None, "left" or "right"; pictures have none."""
        torch.manual_seed(seed)
        if self.inputs == "pixels":
            return {"pixel_values": torch.randn(rows, 3, 16, 16), "labels": torch.randint(5, (rows,))}
        tokens = torch.randint(3, VOCABULARY, (rows, length))
        seen = torch.ones_like(tokens)
        if padding:
            for row in range(rows - 1):  # the last row has no padding
                count = 4 + 5 * row
                seen[row, slice(count) if padding == "left" else slice(length - count, length)] = 0
            tokens = tokens.where(seen.bool(), 0)
        batch = {"input_ids": tokens, "labels": tokens.where(seen.bool(), -100)}
        if padding:
            batch["attention_mask"] = seen
        if self.inputs == "tokens to tokens":
            batch["labels"] = torch.randint(3, VOCABULARY, (rows, 13))
        return batch


def decoder(config, **settings):
    return lambda **changes: config(**DECODER | settings | changes)


MODELS = [
    Tiny("BERT", transformers.BertForMaskedLM, decoder(transformers.BertConfig), generates=False),
    Tiny("GPT-2", transformers.GPT2LMHeadModel, lambda **changes: transformers.GPT2Config(**{
        "vocab_size": VOCABULARY, "n_positions": 256, "n_embd": 48, "n_layer": 3, "n_head": 4,
        "initializer_range": 0.15, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None} | changes)),
    Tiny("Llama", transformers.LlamaForCausalLM, decoder(transformers.LlamaConfig, num_key_value_heads=2)),
    Tiny("Mistral", transformers.MistralForCausalLM,
         decoder(transformers.MistralConfig, num_key_value_heads=2, sliding_window=8)),
    Tiny("Gemma 2", transformers.Gemma2ForCausalLM,
         decoder(transformers.Gemma2Config, num_key_value_heads=2, head_dim=12, sliding_window=8,
                 attn_logit_softcapping=5.0, query_pre_attn_scalar=12)),
    Tiny("gpt-oss", transformers.GptOssForCausalLM,
         decoder(transformers.GptOssConfig, num_key_value_heads=2, head_dim=12, sliding_window=8, num_local_experts=3,
                 num_experts_per_tok=2)),
    Tiny("T5", transformers.T5ForConditionalGeneration, lambda **changes: transformers.T5Config(**{
        "vocab_size": VOCABULARY, "d_model": 48, "d_kv": 12, "d_ff": 64, "num_layers": 3, "num_heads": 4,
        "relative_attention_num_buckets": 8, "relative_attention_max_distance": 20,
        "pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": None} | changes), inputs="tokens to tokens"),
    Tiny("ViT", transformers.ViTForImageClassification, lambda **changes: transformers.ViTConfig(**{
        "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 64, "image_size": 16,
        "patch_size": 4, "num_labels": 5, "initializer_range": 0.15} | changes), inputs="pixels", generates=False),
]  # fmt: skip


def without_dropout(model):
    """Disables dropout in place, because the two implementations drop different weights."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        for name in ("attention_dropout", "attn_pdrop", "dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    return model


def on_rapt(model):
    """A copy of the model with rapt's attention."""
    other = copy.deepcopy(model)
    other.set_attn_implementation("rapt")
    return other
