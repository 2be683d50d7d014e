"""Tiny real networks: random weights, tokenizers trained on the spot, saved like any other.

Each maker fills a folder that `Auto*.from_pretrained` can load. Weights are drawn with a
fixed seed and a large spread, so that outputs differ clearly from text to text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

CORPUS = (
    "Hello! How are you doing today?",
    "I am fine, thanks. And you?",
    "I went hiking in the mountains with my sister last weekend.",
    "That sounds great! Which trail did you take, and how long was it?",
    "We took the long one around the lake, about twelve miles.",
    "Do you like music? I have been learning the guitar since January.",
    "I don't know. What do you mean?",
    "My favourite food is pizza, but I can't cook it as well as my mother.",
    "Where do you work? I work at a small book shop in the old town.",
    "The weather was cold and wet, so we stayed at home and watched a film.",
    "Really? Tell me more about it!",
    "Sorry, I did not get that. Could you say it again?",
    'Café, naïve, 12:30, 100%, e-mail, (yes), "quoted"; 日本語, שלום and 🙂.',
)

CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def make_gpt2(folder: Path) -> Path:
    """A GPT-2-like language model: learned positions, window 128, byte-level BPE."""
    from transformers import GPT2LMHeadModel

    return _save_gpt2(GPT2LMHeadModel, folder)


def make_ranker(folder: Path) -> Path:
    """A network like DialogRPT's: the same with one output instead of words."""
    from transformers import GPT2ForSequenceClassification

    return _save_gpt2(GPT2ForSequenceClassification, folder, num_labels=1)


def _save_gpt2(architecture: Any, folder: Path, **settings: int) -> Path:
    from transformers import GPT2Config, PreTrainedTokenizerFast

    end = "<|endoftext|>"
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=_byte_level_bpe([end]),
        bos_token=end,
        eos_token=end,
        unk_token=end,
        model_max_length=128,
    )
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=128,
        n_embd=48,
        n_layer=2,
        n_head=4,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        initializer_range=0.3,
        **settings,
    )
    return _save(architecture, config, tokenizer, folder)


def make_llama(folder: Path, window: int = 256) -> Path:
    """A Llama-like language model: grouped queries, rotary positions, chat template."""
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    end, start, stop = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=_byte_level_bpe([end, start, stop]),
        bos_token=start,
        eos_token=stop,
        unk_token=end,
        additional_special_tokens=[start, stop],
        model_max_length=window,
        chat_template=CHAT_TEMPLATE,
    )
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=window,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        tie_word_embeddings=True,
        initializer_range=0.3,
    )
    return _save(LlamaForCausalLM, config, tokenizer, folder)


def make_bert(folder: Path) -> Path:
    """A BERT-like encoder: WordPiece, window 64, no pooling configuration."""
    from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors
    from tokenizers.models import WordPiece
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    normalizer = normalizers.BertNormalizer(lowercase=True)
    splitter = pre_tokenizers.BertPreTokenizer()
    texts = map(normalizer.normalize_str, CORPUS)
    words = sorted({word for text in texts for word, _ in splitter.pre_tokenize_str(text)})
    letters = sorted(set("".join(words)))
    # Not trained: the library's trainer makes another vocabulary in every process.
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    inside = [f"##{letter}" for letter in letters]
    vocabulary = dict.fromkeys([*special, *letters, *inside, *words])
    pieces = Tokenizer(
        WordPiece({token: i for i, token in enumerate(vocabulary)}, unk_token="[UNK]")
    )
    pieces.normalizer = normalizer
    pieces.pre_tokenizer = splitter
    pieces.decoder = decoders.WordPiece()
    pieces.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, pieces.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=pieces,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=64,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.3,
    )
    return _save(BertModel, config, tokenizer, folder)


def _byte_level_bpe(special: list[str]):
    from tokenizers import Tokenizer, decoders, pre_tokenizers
    from tokenizers.models import BPE
    from tokenizers.trainers import BpeTrainer

    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=400,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def _save(architecture, config, tokenizer, folder: Path) -> Path:
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = architecture(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
