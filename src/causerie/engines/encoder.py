"""Encoders: text in, vectors out, the same whatever else is in the batch.

An input is a tuple of segments, each a tuple of turns: `(("hi", "hello"), ("how are you",))`
is a context of two turns and a response. Turns of a segment are joined by a space, segments
by the model's own special tokens, for BERT `[CLS] hi hello [SEP] how are you [SEP]`. The last
segment has token type 1 and all before it 0, where the model knows token types.

What exceeds the model's window is cut, and counted. Turns are kept from the newest back, and
of the oldest that has room only its end; the last turn (the response) is cut only if it alone
exceeds the window, and keeps its beginning.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, get_args

import numpy as np
import torch

from causerie.engines.cache import Cache, count_cuts
from causerie.engines.shapes import batches, padded_length, rows_to_add
from causerie.errors import CauserieError
from causerie.models import Pooling, load_backbone

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.engines.onednn import OneDnn
    from causerie.engines.settings import Settings
    from causerie.models import Backbone, Store

EncoderInput: TypeAlias = tuple[tuple[str, ...], ...]
Floats: TypeAlias = "NDArray[np.float32]"
Ids: TypeAlias = "NDArray[np.int32]"
Pass: TypeAlias = tuple[list[int], torch.Tensor, torch.Tensor]
"""Of some rows: their places among those that were asked for, their token vectors (rows, tokens,
dimension) in float32, and the mask of what is not padding. Rows beyond the places are nobody's."""

# Far more characters than a token has in any language: a longer turn cannot fit the window,
# and tokenising megabytes that are thrown away afterwards takes seconds.
CHARACTERS_PER_TOKEN = 32
# Padded tokens of a batch. CPUs are fastest while activations stay in their caches.
CPU_BUDGET, GPU_BUDGET = 2048, 32768
# Token vectors in memory at a time, as a multiple of a batch.
BATCHES_AT_ONCE = 32
REMEMBERED_VECTORS = 16384


@dataclass(frozen=True, eq=False, slots=True)
class Row:
    """One input as the network sees it."""

    ids: Ids
    """All tokens, special ones included."""
    special: NDArray[np.bool_]
    """Which of them are the model's special tokens."""
    last: int
    """Where the last segment begins; 0 if it is the only one."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def key(self) -> tuple[int, bytes]:
        """Equal for equal inputs to the network."""
        return self.last, self.ids.tobytes()


@dataclass(frozen=True, eq=False, slots=True)
class TokenVectors:
    """The contextual vectors of one input, one row per token."""

    vectors: Floats
    ids: Ids
    special: NDArray[np.bool_]
    """Which tokens are the model's own, such as [CLS], rather than of the text."""


class Backend(Protocol):
    """Makes the token vectors of rows: each row's the same whatever others there are."""

    def passes(self, rows: Sequence[Row], budget: int) -> Iterator[Pass]:
        """All rows, in any order, about `budget` tokens at a time."""
        ...


class Tokens:
    """Turns inputs into rows of at most `window` tokens, and rows into padded tensors."""

    def __init__(self, tokenizer: Any, window: int, token_types: bool) -> None:
        self.tokenizer = tokenizer
        self.window = window
        self.token_types = token_types
        self._start, self._between, self._end = special_tokens(tokenizer)
        # WordPiece drops spaces; where they count, a turn after another begins with one.
        a, spaced_a = self._tokenise(["a", " a"]).values()
        self._space = "" if np.array_equal(a, spaced_a) else " "

    def rows(self, inputs: Sequence[EncoderInput]) -> list[Row]:
        """The inputs as rows; what was cut is counted (see `counted_cuts`)."""
        clipped = [self._clip(segments) for segments in inputs]
        texts = self._tokenise(text for turns, _ in clipped for _, text in turns)
        rows, cuts = [], 0
        for segments, (turns, cut) in zip(inputs, clipped, strict=True):
            kept, dropped = self._fit(turns, texts, len(segments))
            rows.append(self._row(kept))
            cuts += cut or dropped
        count_cuts("encoder", cuts, len(rows))
        return rows

    def collate(self, rows: Sequence[Row]) -> dict[str, torch.Tensor]:
        """The network's arguments for a batch, padded on the right to its longest row."""
        return self._padded(rows, (len(rows), max(map(len, rows))))

    def collate_alike(self, rows: Sequence[Row]) -> dict[str, torch.Tensor]:
        """The same for rows of one padded length, in a shape that changes none of their numbers.

        Rows that are only there for the shape come last.
        """
        length = min(padded_length(max(map(len, rows))), self.window)
        return self._padded(rows, (len(rows) + rows_to_add(len(rows), length), length))

    def _padded(self, rows: Sequence[Row], shape: tuple[int, int]) -> dict[str, torch.Tensor]:
        ids = np.full(shape, self.tokenizer.pad_token_id, dtype=np.int64)
        mask = np.zeros(shape, dtype=np.int64)
        mask[len(rows) :, 0] = 1  # a row that sees nothing would not be a number
        types = np.zeros(shape, dtype=np.int64)
        for index, row in enumerate(rows):
            ids[index, : len(row)] = row.ids
            mask[index, : len(row)] = 1
            if row.last:
                types[index, row.last : len(row)] = 1
        arrays = {"input_ids": ids, "attention_mask": mask}
        if self.token_types:
            arrays["token_type_ids"] = types
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def _clip(self, segments: EncoderInput) -> tuple[list[tuple[int, str]], bool]:
        """The turns that might fit, newest first, each with its segment; and whether one was cut.

        Bounds the work per input: every turn with text has at least one token.
        """
        longest = CHARACTERS_PER_TOKEN * self.window
        turns: list[tuple[int, str]] = []
        cut = False
        for segment in reversed(range(len(segments))):
            for turn in reversed(range(len(segments[segment]))):
                if len(turns) > self.window:
                    return turns, True
                text = segments[segment][turn]
                if len(text) > longest:
                    cut = True
                    text = text[-longest:] if turns else text[:longest]
                turns.append((segment, self._space + text if turn else text))
        return turns, cut

    def _fit(
        self, turns: list[tuple[int, str]], texts: dict[str, Ids], segments: int
    ) -> tuple[list[list[Ids]], bool]:
        """The tokens that fit the window, per segment; and whether any did not."""
        special = len(self._start) + len(self._between) * (segments - 1) + len(self._end)
        room = self.window - special
        kept: list[list[Ids]] = [[] for _ in range(segments)]
        for age, (segment, text) in enumerate(turns):
            ids = texts[text]
            if len(ids) > room:
                kept[segment].insert(0, ids[len(ids) - room :] if age else ids[:room])
                return kept, True
            room -= len(ids)
            kept[segment].insert(0, ids)
        return kept, False

    def _row(self, segments: Sequence[Sequence[Ids]]) -> Row:
        pieces = [self._start]
        special = [True]
        last = 0
        for index, segment in enumerate(segments):
            if index:
                pieces.append(self._between)
                special.append(True)
                last = sum(map(len, pieces))
            pieces.extend(segment)
            special.extend(False for _ in segment)
        pieces.append(self._end)
        special.append(True)
        return Row(np.concatenate(pieces), np.repeat(special, [len(p) for p in pieces]), last)

    def _tokenise(self, texts: Iterable[str]) -> dict[str, Ids]:
        """The tokens of every distinct text. "[SEP]" in a text is just five characters."""
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return {}
        encoded = self.tokenizer(
            # Lone surrogates, which a str may hold, are no text to the tokenizer.
            [text.encode("utf-8", "replace").decode("utf-8") for text in distinct],
            add_special_tokens=False,
            split_special_tokens=True,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )["input_ids"]
        return {t: np.array(ids, dtype=np.int32) for t, ids in zip(distinct, encoded, strict=True)}


def special_tokens(tokenizer: Any) -> tuple[Ids, Ids, Ids]:
    """What the tokenizer puts before, between and after two segments."""
    pair = tokenizer("a", "a", return_special_tokens_mask=True)
    tokens = zip(pair["special_tokens_mask"], pair["input_ids"], strict=True)
    runs = [(mask, [i for _, i in run]) for mask, run in groupby(tokens, key=lambda t: t[0])]
    start = runs[0][1] if runs[0][0] else []
    end = runs[-1][1] if runs[-1][0] else []
    between = [i for special, ids in runs[1:-1] if special for i in ids]
    return np.array(start, np.int32), np.array(between, np.int32), np.array(end, np.int32)


class Encoder:
    """A pretrained encoder: vectors of whole inputs, or of their tokens."""

    def __init__(self, backbone: Backbone, budget: int | None = None) -> None:
        """`budget` is the number of padded tokens in a batch; it does not change results."""
        self.name, self.sha256 = backbone.name, backbone.sha256
        self.model: Any = backbone.model.eval()
        self.pooling = backbone.pooling
        self.dimension = int(self.model.config.hidden_size)
        self.device: torch.device = self.model.device
        self.input = Tokens(
            backbone.tokenizer,
            backbone.window,
            token_types=getattr(self.model.config, "type_vocab_size", 0) > 1,
        )
        self._budget = budget or (CPU_BUDGET if self.device.type == "cpu" else GPU_BUDGET)
        self._known: Cache[tuple[str, tuple[int, bytes]], Floats] = Cache(REMEMBERED_VECTORS)
        self._quicker: OneDnn | None = None

    @classmethod
    def load(cls, store: Store, settings: Settings, *, trainable: bool = False) -> Encoder:
        return cls(
            load_backbone(
                store,
                settings.encoder,
                "encoder",
                dtype=settings.torch_dtype(),
                device=settings.torch_device(),
                trainable=trainable,
            )
        )

    def encode(self, inputs: Sequence[EncoderInput], pooling: Pooling | None = None) -> Floats:
        """One vector per input, in order: the `mean` over its tokens or the `first` token's.

        The default pooling is the one the network was trained for.
        """
        pooling = pooling or self.pooling
        if pooling not in get_args(Pooling):
            raise CauserieError(f"unknown pooling {pooling!r}: use mean or first")
        if any(isinstance(one, str) or any(isinstance(s, str) for s in one) for one in inputs):
            raise CauserieError(
                "an input of the encoder is a tuple of segments, each a tuple of turns: "
                'write (("text",),) for a single text'
            )
        vectors = np.empty((len(inputs), self.dimension), dtype=np.float32)
        rows = self.input.rows(inputs)
        new = []
        for index, row in enumerate(rows):
            known = self._known.get((pooling, row.key))
            if known is None:
                new.append(index)
            else:
                vectors[index] = known
        for places, hidden, mask in self._passes(rows, new):
            pooled = pool(hidden, mask, pooling).cpu().numpy()
            for indices, vector in zip(places, pooled, strict=False):
                vectors[indices] = vector
                self._known.put((pooling, rows[indices[0]].key), vector.copy())
        return vectors

    def compute_with(self, backend: str) -> None:
        """Let one of `BACKENDS` make the vectors from now on; with another than torch, for good."""
        if backend != "torch":
            from causerie.engines.onednn import converted

            self.model = self._quicker = converted(self.model, backend, self.name)
            self.forget()

    def as_now(self) -> Encoder:
        """Return one with the present weights, which stay when this one is trained on."""
        same = copy.copy(self)
        same.model = copy.deepcopy(self.model)
        same._known = Cache(REMEMBERED_VECTORS)
        return same

    def forget(self) -> None:
        """Drop remembered vectors: to be called when the weights have changed."""
        self._known.clear()

    def tokens(self, inputs: Sequence[EncoderInput]) -> Iterator[TokenVectors]:
        """The contextual vectors of every input's tokens, in order.

        They are large, so they are made a part of the inputs at a time, as they are consumed.
        Whoever asks `encode` for the same inputs afterwards costs nothing more.
        """
        rows = self.input.rows(inputs)
        start = tokens = 0
        for stop, row in enumerate(rows, start=1):
            tokens += len(row)
            if tokens >= BATCHES_AT_ONCE * self._budget or stop == len(rows):
                found: dict[int, Floats] = {}
                for places, hidden, mask in self._passes(rows, range(start, stop)):
                    pooled = pool(hidden, mask, self.pooling).cpu().numpy()
                    all_vectors = hidden.cpu().numpy()
                    for indices, vectors, one in zip(places, all_vectors, pooled, strict=False):
                        row = rows[indices[0]]
                        found |= dict.fromkeys(indices, vectors[: len(row)])
                        self._known.put((self.pooling, row.key), one.copy())
                for index in range(start, stop):
                    yield TokenVectors(found[index], rows[index].ids, rows[index].special)
                start, tokens = stop, 0

    def word_vectors(self, texts: Sequence[str]) -> Iterator[Floats]:
        """For each text the input embeddings of its tokens: static, one row per token."""
        for row in self.input.rows([((text,),) for text in texts]):
            yield self._embeddings[row.ids[~row.special]]

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """The last layer's output, (rows, tokens, dimension), for a batch from `collate`."""
        moved = {name: tensor.to(self.device) for name, tensor in batch.items()}
        hidden: torch.Tensor = self.model(**moved).last_hidden_state
        return hidden

    def _passes(
        self, rows: Sequence[Row], wanted: Iterable[int]
    ) -> Iterator[tuple[list[list[int]], torch.Tensor, torch.Tensor]]:
        """Token vectors of the wanted rows, in float32, each distinct one made once.

        With the vectors of several rows, for each of these, where among `rows` it occurs, and
        the mask of what is not padding; rows beyond those are there for the shape of the pass.
        """
        found: dict[tuple[int, bytes], list[int]] = {}
        for index in wanted:
            found.setdefault(rows[index].key, []).append(index)
        distinct = list(found.values())
        backend: Backend = self._quicker or self
        for places, hidden, mask in backend.passes([rows[i[0]] for i in distinct], self._budget):
            yield [distinct[place] for place in places], hidden, mask

    def passes(self, rows: Sequence[Row], budget: int) -> Iterator[Pass]:
        """Torch's own: rows of one padded length go through the network together."""
        for places in batches([len(row) for row in rows], budget):
            batch = self.input.collate_alike([rows[place] for place in places])
            with torch.inference_mode():
                hidden = self.forward(batch).float()
            yield places, hidden, batch["attention_mask"]

    @cached_property
    def _embeddings(self) -> Floats:
        weights: torch.Tensor = self.model.get_input_embeddings().weight
        array: Floats = weights.detach().float().cpu().numpy()
        return array


def pool(hidden: torch.Tensor, mask: torch.Tensor, pooling: Pooling) -> torch.Tensor:
    """One vector per row of (rows, tokens, dimension), leaving out the padding."""
    if pooling == "first":
        return hidden[:, 0]
    weights = mask.to(hidden.device, hidden.dtype).unsqueeze(-1)
    return (hidden * weights).sum(1) / weights.sum(1)
