"""Writes a model's tokenizer, from its GGUF file, as Hugging Face's packages read it: `tokenizer.py MODEL FOLDER`.

For byte-level BPE that splits digits, as SmolLM2's does. Needs the package `tokenizers`.
"""

import json
import sys
from pathlib import Path

from template import LIST, TEXT, Reader
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

TOKENS, MERGES, KINDS, END = (f"tokenizer.ggml.{name}".encode() for name in ("tokens", "merges", "token_type", "eos_token_id"))
CONTROL = 3


def read(path):
    with path.open("rb") as file:
        reader, found = Reader(file), {}
        _, _, _, pairs = reader.take("4sIQQ")
        for _ in range(pairs):
            key = reader.text()
            (kind,) = reader.take("I")
            if key == END:
                (found[key],) = reader.take("I")
            elif key in (TOKENS, MERGES, KINDS):
                assert kind == LIST, key
                inner, count = reader.take("IQ")
                found[key] = [reader.text().decode() if inner == TEXT else reader.take("i")[0] for _ in range(count)]
            else:
                reader.skip(kind)
    return found


def write(model, folder):
    found = read(model)
    tokens = found[TOKENS]
    bpe = models.BPE(vocab={token: number for number, token in enumerate(tokens)}, merges=[tuple(pair.split(" ")) for pair in found[MERGES]])
    tokenizer = Tokenizer(bpe)
    digits, bytes_ = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Sequence([digits, bytes_]), decoders.ByteLevel()
    special = [token for token, kind in zip(tokens, found[KINDS], strict=True) if kind == CONTROL]
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in special])
    tokenizer.save(str(folder / "tokenizer.json"))
    end = tokens[found[END]]
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end, "pad_token": end, "model_max_length": 2048}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
