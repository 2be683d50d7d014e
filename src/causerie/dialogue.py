"""The data model: a dialogue is turns, an exchange is one of them with what came before.

Who is the user and who is the system is decided here and nowhere else. A role that is given wins;
a speaker whose name is in `ROLES` has that one; where one side is known, everybody else is the
other (`Dialogue`). So either every turn of a dialogue has a role or none has, and where none has,
`role_of` says who plays which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from causerie.errors import CauserieError, RecordError

Role: TypeAlias = Literal["user", "system"]

_USERS = ("user", "human", "customer")
_SYSTEMS = (
    *("system", "assistant", "bot", "chatbot", "model", "ai"),
    *("gpt", "chatgpt", "bing", "bard"),
)
ROLES: Mapping[str, Role] = {
    **dict.fromkeys(_USERS, "user"),
    **dict.fromkeys(_SYSTEMS, "system"),
}
"""The roles of speakers whose names, in small letters, say it."""

BACKGROUND = frozenset({"system", "developer"})
"""Chat messages of these roles are what the assistant was told, not what was said."""

TOOLS = frozenset(
    {"tool", "function", "tool_call", "function_call", "tool_response", "function_response"}
    | {"observation", "ipython"}
)
"""Messages to and from these are left out and counted."""

Fields: TypeAlias = Mapping[str, frozenset[str]]
"""Values by the name of a field of records."""

EVERYBODY = "all"
"""The name of no speaker: every turn is wanted."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance."""

    speaker: str
    text: str
    """What was said; empty if the speaker kept silent."""
    role: Role | None = None
    """Who speaks, if it is given or the speaker's name says so."""
    time: str | None = None
    references: tuple[str, ...] = ()
    """Other texts that would have been good here; reference-based metrics need them."""
    features: Mapping[str, float] = field(default_factory=dict)
    """Numbers the caller knows about the turn, such as the confidence of speech recognition."""
    message: int | None = field(default=None, compare=False, repr=False)
    """0-based index in the record it was read from, which counts system and tool messages too."""

    def __post_init__(self) -> None:
        if self.role not in ("user", "system"):
            role = ROLES.get((self.role or self.speaker).lower())
            if role is not None:
                object.__setattr__(self, "role", role)
            elif self.role is not None:
                raise CauserieError(f"the role of a turn is user or system, not {self.role!r}")

    def is_by(self, speaker: str) -> bool:
        """Whether the turn is by the speaker of this name, or by one with the role it names."""
        return speaker == self.speaker or (
            self.role is not None and self.role == ROLES.get(speaker.lower())
        )


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A conversation: an id and its turns in order."""

    id: str
    turns: tuple[Turn, ...]
    rating: float | None = None
    date: str | None = None
    system: str | None = None
    """Which chatbot took part."""
    background: tuple[str, ...] = ()
    """What the speakers knew beforehand: a persona, facts, a system prompt."""
    metadata: Mapping[str, object] = field(default_factory=dict)
    source: str | None = field(default=None, compare=False, repr=False)
    """The file it was read from, as the caller named it."""

    def __post_init__(self) -> None:
        try:
            turns = _with_roles(tuple(self.turns))
        except (AttributeError, TypeError):
            raise CauserieError(
                "the turns of a dialogue are Turn objects: make it with Dialogue.from_texts or "
                "Dialogue.from_messages of anything else"
            ) from None
        object.__setattr__(self, "turns", turns)

    @classmethod
    def from_messages(
        cls, messages: Iterable[object], *, id: str = "dialogue", system: str | None = None
    ) -> Dialogue:
        """Make a dialogue of chat messages as OpenAI (or ShareGPT) writes them.

        System and developer messages become the background; messages to and from tools are left
        out, and `metadata["tool_messages"]` counts them. Where `system` is not given, it is the
        `model` that the messages name.

        >>> hi = {"role": "user", "content": "Hi!"}
        >>> Dialogue.from_messages([hi, {"role": "assistant", "content": None}]).turns[1].text
        ''
        """
        if not isinstance(messages, Iterable):
            raise CauserieError(
                "messages are a list of objects with role and content, "
                f"not {type(messages).__name__}"
            )
        try:
            chat = read_chat(messages)
            check_said(chat.turns)
        except RecordError as bad:
            raise CauserieError(f"these messages are no dialogue: {bad}") from None
        return cls(
            id,
            chat.turns,
            system=system or chat.model,
            background=chat.background,
            metadata=chat.metadata,
        )

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        *,
        speakers: Sequence[str] = ("A", "B"),
        id: str = "dialogue",
        system: str | None = None,
    ) -> Dialogue:
        """Make a dialogue of texts that the speakers say in turn.

        >>> talk = Dialogue.from_texts(["Hi!", "Hello."], speakers=("user", "assistant"))
        >>> [(turn.speaker, turn.role) for turn in talk.turns]
        [('user', 'user'), ('assistant', 'system')]
        """
        if (
            isinstance(texts, str)
            or not isinstance(texts, Iterable)
            or isinstance(speakers, str)
            or not isinstance(speakers, Sequence)
            or not speakers
            or not all(isinstance(speaker, str) for speaker in speakers)
        ):
            raise CauserieError("texts and speakers are lists of strings, with a speaker at least")
        try:
            said = [checked(text, "text") for text in texts]
            turns = tuple(
                Turn(speakers[index % len(speakers)], text, message=index)
                for index, text in enumerate(said)
            )
            check_said(turns)
        except RecordError as bad:
            raise CauserieError(f"these texts are no dialogue: {bad}") from None
        return cls(id, turns, system=system)

    def turns_by(self, speaker: str | None) -> list[int]:
        """Return the indices of the turns by one speaker, or of one role, in order.

        None stands for the system where the dialogue says who that is, and otherwise, like
        "all", for everybody. "assistant", "bot" and the other names in `ROLES` mean their role.
        """
        if speaker is None and any(turn.role == "system" for turn in self.turns):
            speaker = "system"
        if speaker is None or speaker == EVERYBODY:
            return list(range(len(self.turns)))
        return [index for index, turn in enumerate(self.turns) if turn.is_by(speaker)]

    def exchanges(self, speaker: str | None = EVERYBODY) -> list[Exchange]:
        """Return every response with its context, or only those that `turns_by` finds.

        The first turn responds to nothing, so a dialogue of n turns has n-1 exchanges.
        """
        return [Exchange(self, index) for index in self.turns_by(speaker) if index]

    def role_of(self, turn: Turn, system: str | None = None) -> Role:
        """Return the turn's role; where none is known, `system` is the speaker who is the system.

        Without a name that is whoever speaks last.
        """
        if turn.role is not None:
            return turn.role
        played_by = self.turns[-1].speaker if system is None else system
        return "system" if turn.speaker == played_by else "user"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A response with the turns before it: a view of a dialogue at one of its turns."""

    dialogue: Dialogue
    turn: int
    """0-based index of the response in its dialogue."""

    @property
    def response(self) -> Turn:
        return self.dialogue.turns[self.turn]

    @property
    def context(self) -> tuple[Turn, ...]:
        return self.dialogue.turns[: self.turn]

    def last(self, count: int) -> tuple[Turn, ...]:
        """The last `count` turns of the context, without copying the rest of it."""
        return self.dialogue.turns[max(0, self.turn - count) : self.turn]

    @property
    def references(self) -> tuple[str, ...]:
        return self.response.references

    @property
    def background(self) -> tuple[str, ...]:
        return self.dialogue.background

    def with_response(self, text: str) -> Exchange:
        """The same context, answered otherwise."""
        turns = (*self.context, replace(self.response, text=text))
        return replace(self, dialogue=replace(self.dialogue, turns=turns))

    def recent(self, count: int) -> Exchange:
        """The same exchange with only the last `count` turns of its context."""
        if self.turn <= count:
            return self
        turns = (*self.last(count), self.response)
        return Exchange(replace(self.dialogue, turns=turns), count)

    def role_of(self, turn: Turn) -> Role:
        """Return the turn's role; where none is known, the response's speaker is the system."""
        return self.dialogue.role_of(turn, self.response.speaker)


def named_value(dialogue: Dialogue, fields: Fields) -> str | None:
    """The first of these values that the dialogue has, as FIELD=VALUE; None if it has none."""
    known = {**dialogue.metadata, "system": dialogue.system}
    found = (f"{name}={known.get(name)}" for name in fields if str(known.get(name)) in fields[name])
    return next(found, None)


def exchanges_of(record: Dialogue | Exchange, speaker: str | None) -> list[Exchange]:
    """Return what is scored of a record: the exchanges of a dialogue, or the exchange that it is.

    `speaker` is as in `Dialogue.turns_by`; a context with a response asks for that response,
    so nothing but the name of another speaker excludes it.
    """
    if isinstance(record, Dialogue):
        return record.exchanges(speaker)
    wanted = speaker is None or speaker == EVERYBODY or record.response.is_by(speaker)
    return [record] if wanted else []


@dataclass(frozen=True, slots=True)
class Chat:
    """What a list of turns or messages says, sorted out."""

    turns: tuple[Turn, ...]
    background: tuple[str, ...]
    tool_messages: int
    """Messages to and from tools; they are left out."""
    model: str | None
    """The model that the messages name, if they name just one."""

    @property
    def metadata(self) -> dict[str, object]:
        return {"tool_messages": self.tool_messages} if self.tool_messages else {}


def read_message(message: object, index: int | None = None) -> Turn | str | None:
    """Read one chat message: a turn, a text of the background, or None if it is a tool's.

    OpenAI's messages have `role` and `content`, ShareGPT's `from` and `value`. Raises
    `RecordError`.
    """
    fields = _fields(message)
    sharegpt = fields.get("from") is not None
    given = fields.get("from" if sharegpt else "role")
    if not isinstance(given, str):
        raise RecordError(
            "role is missing"
            if given is None
            else f"role must be a string, not {type(given).__name__}"
        )
    name = given.strip().lower()
    if name in TOOLS:
        return None  # never shown, so whatever it holds is fine
    role = ROLES.get(name)
    if role is None and name not in BACKGROUND:
        raise RecordError(f"role {name!r} is not user, assistant, system or tool")
    key = "value" if sharegpt else "content"
    calls_tool = bool(fields.get("tool_calls") or fields.get("function_call"))
    if key not in fields and not calls_tool:
        raise RecordError(f"{key} is missing")
    text = _content(fields.get(key), key) or _content(fields.get("refusal"), "refusal")
    if name in BACKGROUND:
        return text
    if not text and (_is_of_tools(fields.get(key)) or (role == "system" and calls_tool)):
        return None
    speaker = fields.get("name")
    if not isinstance(speaker, str) or not speaker.strip():
        speaker = "user" if role == "user" else "assistant"
    return Turn(checked(speaker, "name"), text, role, message=index)


def read_chat(
    items: Iterable[object],
    read: Callable[[object, int], Turn | str | None] = read_message,
    name: str = "message",
) -> Chat:
    """Sort items into what was said, what was known and what went to tools, as `read` says."""
    turns: list[Turn] = []
    background: list[str] = []
    models: set[str] = set()
    tool_messages = 0
    for index, item in enumerate(items):
        try:
            found = read(item, index)
        except RecordError as bad:
            raise RecordError(f"{name} {index}: {bad}") from None
        if isinstance(found, Turn):
            turns.append(found)
        elif found is None:
            tool_messages += 1
        elif found:
            background.append(found)
        model = (
            item.get("model") if isinstance(item, (dict, Mapping)) else getattr(item, "model", None)
        )
        if isinstance(model, str) and model.strip():
            models.add(checked(model, "model"))
    model = models.pop() if len(models) == 1 else None
    return Chat(tuple(turns), tuple(background), tool_messages, model)


def check_said(turns: Sequence[Turn]) -> None:
    """Raise `RecordError` unless somebody said something."""
    if not turns:
        raise RecordError("has no turns")
    if not any(turn.text for turn in turns):
        raise RecordError("has no text: all its turns are empty")


def checked(value: object, name: str) -> str:
    """Return a text without the white space around it; `RecordError` if it cannot be one."""
    if not isinstance(value, str):
        raise RecordError(
            f"{name} is missing"
            if value is None
            else f"{name} must be a string, not {type(value).__name__}"
        )
    if "\0" in value:
        raise RecordError(f"{name} has a NUL character")
    value = value.strip()
    return value if value.isascii() else encodable(value, name)


def encodable(text: str, name: str) -> str:
    """Return the text itself; `RecordError` if it cannot be written as UTF-8."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise RecordError(f"{name} has a lone surrogate") from None
    return text


def _with_roles(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Give everybody a role where somebody has one: a speaker's own, or the other side's."""
    if len({turn.role is None for turn in turns}) < 2:
        return turns
    known = {turn.speaker: turn.role for turn in turns if turn.role is not None}
    others: Role = "user" if "system" in known.values() else "system"
    return tuple(
        turn if turn.role else replace(turn, role=known.get(turn.speaker, others)) for turn in turns
    )


def _fields(message: object) -> Mapping[str, object]:
    """The fields of a message, which may be an object of OpenAI's own client."""
    dump = getattr(message, "model_dump", None)
    if callable(dump):
        message = dump()
    if not isinstance(message, (dict, Mapping)):
        raise RecordError(f"must be an object, not {type(message).__name__}")
    return message


def _content(content: object, name: str) -> str:
    """The text of a message: a string, or the parts of a list that are text."""
    if content is None:
        return ""
    if isinstance(content, list):
        content = "\n".join(part for item in content if (part := _part(item, name)) is not None)
    return checked(content, name)


def _is_of_tools(content: object) -> bool:
    """Whether a part of a message's content goes to a tool or comes from one."""
    parts = content if isinstance(content, list) else []
    kinds = [part.get("type") for part in parts if isinstance(part, Mapping)]
    return any(str(kind).startswith(("tool", "function")) for kind in kinds)


def _part(part: object, name: str) -> str | None:
    if not isinstance(part, Mapping):
        raise RecordError(f"a part of the content must be an object, not {type(part).__name__}")
    kind = part.get("type")
    if kind not in ("text", "input_text", "output_text", "refusal"):
        return None
    said = part.get("refusal" if kind == "refusal" else "text")
    if not isinstance(said, str):
        raise RecordError(f"text in {name} must be a string, not {type(said).__name__}")
    return said
