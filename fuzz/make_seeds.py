"""Creates the first seeds of fuzz/corpus from tests/data/files: the smallest file of each kind, small broken ones, and
small tokenizers.

    python3 fuzz/make_seeds.py

Inputs that fuzzers found interesting are kept beside them: see scripts/fuzz.sh.
"""

import json
import pathlib
import struct

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = ROOT / "tests" / "data" / "files"
NPY = ["f32", "f64_fortran", "bf16_big", "bool", "int64", "uint8_big_fortran", "scalar", "empty", "rank8", "rank9",
       "version2", "version3", "records", "text"]
HEADERS = [
    '{}',
    '{"__metadata__":{"a":"b","\\u00e9\\ud83d\\ude00":"\\n"}}',
    '{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
    '{"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"BF16","shape":[1],"data_offsets":[1,3]},'
    '"c":{"dtype":"F4","shape":[2],"data_offsets":[3,4],"more":[true,false,null,-1.5e+3,{}]}}',
]

# Small files of tokenizers. Their letters are those of the texts in fuzz/check_tokenizer.cc.
WORDS = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "##a": 4, "an": 5, "##im": 6, "t": 7, "##he": 8, "cafe": 9, "\u4e2d": 10}
BYTES = {"a": 0, "b": 1, "ab": 2, "\u0120": 3, "t": 4, "\u0120t": 5, "h": 6, "e": 7, "he": 8, "\u0120the": 9, "aa": 10}
MERGES = ["a b", "h e", "a a", "\u0120 t", "\u0120t he"]
ADDED = [{"id": 11, "content": "[MASK]", "single_word": False, "lstrip": True, "rstrip": True, "normalized": False, "special": True},
         {"id": 12, "content": "Tired", "single_word": True, "lstrip": False, "rstrip": False, "normalized": True, "special": False}]
BERT = {
    "added_tokens": ADDED,
    "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "TemplateProcessing",
                       "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                       "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]}}},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
              "vocab": WORDS},
}
NORMALIZERS = [{"type": "NFKC"}, {"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "NFD"}, {"type": "StripAccents"},
               {"type": "Replace", "pattern": {"String": "b"}, "content": "ba"}, {"type": "Lowercase"}]
ROBERTA = {
    "added_tokens": ADDED[:1],
    "normalizer": {"type": "Sequence", "normalizers": NORMALIZERS},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Whitespace"},
                      {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}]},
    "post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True},
                       {"type": "RobertaProcessing", "sep": ["a", 0], "cls": ["b", 1], "trim_offsets": True, "add_prefix_space": False}]},
    "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True},
    "model": {"dropout": None, "unk_token": "h", "fuse_unk": True, "ignore_merges": True, "vocab": BYTES,
              "merges": [*MERGES, ["t", "he"]][:5]},
}
TOKENIZERS = {
    "bert": {"tokenizer.json": json.dumps(BERT)},
    "roberta": {"tokenizer.json": json.dumps(ROBERTA)},
    "vocab-txt": {"vocab.txt": "[UNK]\n[CLS]\n[SEP]\na\n##a\ncaf\u00e9\n", "special_tokens_map.json": '{"cls_token":"[CLS]"}',
                  "tokenizer_config.json": '{"do_lower_case":false,"added_tokens_decoder":{"6":{"content":"[MASK]"}}}'},
    "vocab-json": {"vocab.json": json.dumps(BYTES), "merges.txt": "#version: 0.2\n" + "\n".join(MERGES)},
}


def main():
    corpus = ROOT / "fuzz" / "corpus"
    for name in ("npy", "npz", "safetensors", "tokenizer"):
        (corpus / name).mkdir(parents=True, exist_ok=True)
    for name in NPY:
        (corpus / "npy" / f"seed-{name}").write_bytes((FILES / f"{name}.npy").read_bytes())
    for name in ("stored", "deflated", "empty"):
        (corpus / "npz" / f"seed-{name}").write_bytes((FILES / f"{name}.npz").read_bytes())
    for name in ("types", "empty"):
        (corpus / "safetensors" / f"seed-{name}").write_bytes((FILES / f"{name}.safetensors").read_bytes())
    for name, files in TOKENIZERS.items():
        parts = [f"{file}\n{content}".encode() for file, content in files.items()]
        (corpus / "tokenizer" / f"seed-{name}").write_bytes(b"\0".join(parts))
    for number, header in enumerate(HEADERS):
        bytes_ = struct.pack("<Q", len(header)) + header.encode() + (b"\1\2\3\4" if "F" in header else b"")
        (corpus / "safetensors" / f"seed-{number}").write_bytes(bytes_)


if __name__ == "__main__":
    main()
