"""How the turns of a dialogue become tokens for a language model."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

from causerie.dialogue import Role
from causerie.engines.cache import Cache
from causerie.engines.tree import Segment
from causerie.errors import CauserieError

FORMATS = ("chat", "eos", "plain", "published")

_MEMO_CAPACITY = 20_000
_MEMO_LONGEST = 1_000  # characters: hypotheses and ordinary turns, never megabytes
_TEMPLATE_LONGEST = 100_000  # characters of a chat template, and of what it makes of three turns
_TEMPLATE_STEPS = 20_000  # lines that it may run through for that


@dataclass(frozen=True)
class Scaffold:
    """What surrounds the text of a turn."""

    header: tuple[int, ...] = ()
    """Before the text; not scored."""
    lead: str = ""
    """White space that belongs to the text's first token."""
    footer: tuple[int, ...] = ()
    """After the text."""
    end: int = 0
    """How many tokens of the footer are scored: up to the one that ends the turn."""


@dataclass(frozen=True)
class TurnFormat:
    """Turns to segments: one of `chat`, `eos`, `plain`, for one tokenizer.

    A turn's text is only ever text: what looks like a special token in it is tokenised as the
    characters it is made of.
    """

    name: str
    tokenizer: Any
    prefix: tuple[int, ...]
    """How every sequence starts; not scored."""
    scaffolds: Mapping[Role, Scaffold]
    longest: int | None = None
    """Characters of a text beyond which nothing can be within the model's window."""
    one_line: bool = False
    """Line breaks end a turn, so those within a text become spaces."""
    between: bool = False
    """Headers stand between turns, where they are scored: none before the first."""
    joins: bool = False
    """Consecutive turns of one role become one turn, because the format needs alternation."""
    _memo: Cache[str, tuple[int, ...]] = field(default_factory=lambda: Cache(_MEMO_CAPACITY))

    def segment(
        self, role: Role, text: str, *, after: Role | None = None, then: Role | None = None
    ) -> Segment:
        """The tokens of a turn; `after` and `then` are the roles before and after it, if any."""
        scaffold = self.scaffolds[role]
        text = text[: self.longest]
        if self.one_line:
            text = " ".join(text.splitlines())
        header, lead = scaffold.header, scaffold.lead
        if self.joins and after == role:
            header, lead = (), "\n"
        text_tokens = self.tokens(lead + text)
        if self.between:
            tokens = text_tokens if after is None else header + text_tokens
            return Segment(tokens, 0, len(tokens))
        stop = len(header) + len(text_tokens)
        if self.joins and then == role:
            return Segment(header + text_tokens, len(header), stop)
        tokens = header + text_tokens + scaffold.footer
        return Segment(tokens, len(header), stop + scaffold.end)

    def tokens(self, text: str) -> tuple[int, ...]:
        """A text by itself, in which nothing is a special token."""
        tokens = self._memo.get(text)
        if tokens is None:
            tokens = _encode(self.tokenizer, text, special=False)
            if len(text) <= _MEMO_LONGEST:
                self._memo.put(text, tokens)
        return tokens


def turn_format(tokenizer: Any, name: str | None = None, window: int | None = None) -> TurnFormat:
    """The format of that name, or the one that fits the tokenizer.

    With a window, of texts of megabytes only so much is tokenised as could ever be seen.

    - `chat`: the tokenizer's chat template, the user as user and the system as assistant. A
      default system prompt belongs to the prefix. The text and the token that ends the turn
      are scored, the rest of the template is not.
    - `eos`: end-of-text before the first turn and after every turn (DialoGPT and its kind);
      the latter are scored.
    - `published`: as the published code of FED and C-PMI writes them, end-of-text before the
      first turn and between turns, with spaces around it, and nothing after the last.
    - `plain`: lines "A: text" (user) and "B: text" (system); the text and the line break are
      scored.

    Without a name: `chat` if there is a template, else `eos` if there is an end-of-text token,
    else `plain`.
    """
    has_template = bool(getattr(tokenizer, "chat_template", None))
    has_eos = tokenizer.eos_token_id is not None
    if name is None:
        name = "chat" if has_template else "eos" if has_eos else "plain"
    if name not in FORMATS:
        raise CauserieError(f"unknown turn format {name!r}: use one of {', '.join(FORMATS)}")
    if name == "chat" and not has_template:
        raise CauserieError(
            "the language model has no chat template: use --turn-format eos or plain"
        )
    if name in ("eos", "published") and not has_eos:
        raise CauserieError("the language model has no end-of-text token: use --turn-format plain")
    made = {"chat": _chat, "eos": _eos, "plain": _plain, "published": _published}[name](tokenizer)
    if window is None:
        return made
    return replace(made, longest=(window + 1) * max(map(len, tokenizer.get_vocab())))


def _eos(tokenizer: Any) -> TurnFormat:
    eos = (int(tokenizer.eos_token_id),)
    scaffold = Scaffold(footer=eos, end=1)
    return TurnFormat("eos", tokenizer, eos, {"user": scaffold, "system": scaffold})


def _published(tokenizer: Any) -> TurnFormat:
    eos = (int(tokenizer.eos_token_id),)
    scaffold = Scaffold(header=_encode(tokenizer, " ", special=False) + eos, lead=" ")
    turns: dict[Role, Scaffold] = {"user": scaffold, "system": scaffold}
    return TurnFormat("published", tokenizer, eos, turns, between=True)


def _plain(tokenizer: Any) -> TurnFormat:
    bos = tokenizer.bos_token_id
    line_break = _encode(tokenizer, "\n", special=False)

    def scaffold(label: str) -> Scaffold:
        header = _encode(tokenizer, label, special=False)
        return Scaffold(header, " ", line_break, len(line_break))

    return TurnFormat(
        "plain",
        tokenizer,
        () if bos is None else (int(bos),),
        {"user": scaffold("A:"), "system": scaffold("B:")},
        one_line=True,
    )


def _chat(tokenizer: Any) -> TurnFormat:
    """Find a template's parts by rendering short dialogues and taking differences."""
    user_one, system_one, user_two = "causerieuserone", "causeriesystemone", "causerieusertwo"
    if len(str(tokenizer.chat_template)) > _TEMPLATE_LONGEST:
        raise _unbounded(f"has more than {_TEMPLATE_LONGEST:,} characters")

    def render(*texts: str) -> str:
        messages = [
            {"role": "assistant" if text == system_one else "user", "content": text}
            for text in texts
        ]
        with _bounded_template():
            rendered = str(tokenizer.apply_chat_template(messages, tokenize=False))
        if len(rendered) > _TEMPLATE_LONGEST:
            raise _unbounded(f"writes more than {_TEMPLATE_LONGEST:,} characters")
        return rendered

    def between(rendered: str, left: str, right: str) -> str:
        return rendered.split(left, 1)[1].split(right, 1)[0]

    try:
        whole = render(user_one, system_one, user_two)
        user_footer = render(user_one).split(user_one)[1]
        system_footer = render(user_one, system_one).split(system_one)[1]
        # A header is what stands between two texts without the footer of the first.
        system_header = _without(between(whole, user_one, system_one), start=user_footer)
        user_header = _without(between(whole, system_one, user_two), start=system_footer)
        prefix = _without(whole.split(user_one)[0], end=user_header)
    except CauserieError:
        raise
    except Exception as error:
        raise CauserieError(
            "the language model's chat template cannot be divided into turns: "
            "use --turn-format eos or plain"
        ) from error
    try:
        joins = user_two not in render(user_one, user_two)
    except CauserieError:
        raise
    except Exception:  # whatever the template raises: it wants the roles to alternate
        joins = True

    special = set(tokenizer.all_special_ids)

    def scaffold(header: str, footer: str) -> Scaffold:
        bare = header.rstrip(" ")
        footer_tokens = _encode(tokenizer, footer, special=True)
        ends = [i + 1 for i, token in enumerate(footer_tokens) if token in special]
        return Scaffold(
            header=_encode(tokenizer, bare, special=True),
            lead=header[len(bare) :],
            footer=footer_tokens,
            end=ends[0] if ends else len(footer_tokens),
        )

    return TurnFormat(
        "chat",
        tokenizer,
        _encode(tokenizer, prefix, special=True),
        {
            "user": scaffold(user_header, user_footer),
            "system": scaffold(system_header, system_footer),
        },
        joins=joins,
    )


@contextmanager
def _bounded_template() -> Iterator[None]:
    """Stop a chat template that does not come to an end: a file may bring loops within loops.

    What a template may call is its sandbox's affair; how long it runs is nobody's, so its lines
    are counted as a debugger would.
    """
    steps = 0

    def count(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        if frame.f_code.co_filename != "<template>":  # as templates call themselves
            return None
        steps += 1
        if steps > _TEMPLATE_STEPS:
            raise _unbounded(f"takes more than {_TEMPLATE_STEPS:,} steps")
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        yield
    finally:
        sys.settrace(before)


def _unbounded(what: str) -> CauserieError:
    return CauserieError(
        f"the language model's chat template {what}, which no template needs: "
        "use --turn-format eos or plain"
    )


def _without(text: str, start: str = "", end: str = "") -> str:
    if not (text.startswith(start) and text.endswith(end)):
        raise ValueError(f"{text!r} is not within {start!r} and {end!r}")
    return text[len(start) : len(text) - len(end)]


def _encode(tokenizer: Any, text: str, *, special: bool) -> tuple[int, ...]:
    """Tokens of a text; special tokens in it are recognised only if `special`."""
    # Lone surrogates, which a str may hold, are no text to the tokenizer.
    text = text.encode("utf-8", "replace").decode("utf-8")
    encoded = tokenizer(
        text, add_special_tokens=False, split_special_tokens=not special, verbose=False
    )
    return tuple(encoded["input_ids"])
