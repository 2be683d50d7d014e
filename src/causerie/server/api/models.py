"""What requests and answers hold; OpenAPI is made of this."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from causerie.metrics.base import Level

MOST_METRICS = 100
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Json: TypeAlias = Any

_TALK: Json = [
    {"role": "user", "content": "Any plans for the weekend?"},
    {"role": "assistant", "content": "I want to hike up to the lake on Sunday."},
]
_RECORD: Json = {
    "id": "d1",
    "turns": [{"speaker": "A", "text": "Hi!"}, {"speaker": "B", "text": "Hey."}],
}


class Strict(BaseModel):
    """A request: a field that is not known is a mistake."""

    model_config = ConfigDict(extra="forbid")


class Wanted(Strict):
    """What all requests for scores say."""

    metrics: list[Name] | None = Field(
        default=None,
        max_length=MOST_METRICS,
        description="Aliases of metrics that this server offers; all of them if left out.",
    )
    speaker: Name | None = Field(
        default=None,
        description="Whose responses: a name, a role, or `all`; the system where it is known who "
        "that is, if left out.",
    )
    columns: dict[Name, Name] = Field(
        default_factory=dict,
        max_length=50,
        description="What the records call the fields that they name otherwise.",
    )


class ScoreRequest(Wanted):
    """Conversations to score."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"messages": _TALK, "turns": "last"},
                {"data": [_RECORD, _TALK], "explain": True},
                {"data": [{"context": "Hi!\nHow are you?", "response": "Fine, and you?"}]},
            ]
        },
    )

    messages: list[Json] | None = Field(
        default=None, description="One conversation, as OpenAI has it."
    )
    data: list[Json] | dict[str, Json] | None = Field(
        default=None,
        description="Instead: a record as `causerie score` reads it, or a list of records, of "
        "lists of messages, or of lists of strings.",
    )
    level: Level = "turn"
    turns: Literal["all", "last"] | list[list[Annotated[int, Field(ge=0, le=10**6)]]] = Field(
        default="all",
        description="Which responses: all, the last one of each record, or by record a list of "
        "their places, counted from 0.",
    )
    percentiles: bool = Field(default=False, description="Add percentiles among human responses.")
    explain: bool = Field(default=False, description="Add explanations.")
    text: bool = Field(default=True, description="Whether rows hold what was said.")


class Skipped(BaseModel):
    """A record that cannot be used."""

    record: int | None
    reason: str


class ScoreAnswer(BaseModel):
    """Rows as `causerie score` writes them."""

    columns: list[str]
    rows: list[dict[str, Json]] = Field(
        description="The columns, and `unscored`: why there is no number, by column."
    )
    skipped: list[Skipped]
    signature: str = Field(description="Everything that decides the numbers besides the input.")

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "columns": ["dialogue_id", "turn", "speaker", "text", "cosine"],
                    "rows": [
                        {
                            "dialogue_id": "data:1",
                            "turn": 1,
                            "speaker": "assistant",
                            "text": "I want to hike up to the lake on Sunday.",
                            "cosine": 0.42,
                            "unscored": {},
                        }
                    ],
                    "skipped": [],
                    "signature": "causerie|0.2.0 cosine|...",
                }
            ]
        }
    )


class CompareRequest(Wanted):
    """Responses of an old system and of a new one."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"a": [["Hi!", "Go away."]], "b": [["Hi!", "Hello, nice to see you."]]}]
        },
    )

    a: list[Json] | dict[str, Json]
    b: list[Json] | dict[str, Json]
    seed: int = Field(default=0, ge=0, le=2**32 - 1)
    confidence: float = Field(0.95, ge=0.5, le=0.999)


class CompareAnswer(BaseModel):
    """What a comparison found; differences are b minus a."""

    model_config = ConfigDict(extra="allow")

    how: str
    pairs: int | None
    columns: list[dict[str, Json]]
    signature: str


class ColumnAbout(BaseModel):
    """One number of a metric."""

    column: str
    help: str
    better: Literal["higher", "lower"] | None
    range: tuple[float | None, float | None]
    unit: str
    sentinel: bool
    calibrated: bool = Field(description="Whether it has percentiles among human responses.")
    limit: float | None = Field(description="Above which a probability counts as found.")


class MetricAbout(BaseModel):
    """A metric that this server offers."""

    alias: str
    metric: str
    summary: str
    needs: list[str]
    columns: dict[Level, list[ColumnAbout]]


class MetricsAnswer(BaseModel):
    """What can be asked for."""

    metrics: list[MetricAbout]
    signature: str


class PlanRequest(Strict):
    """What somebody means to ask for."""

    metrics: list[Name] | None = Field(default=None, max_length=MOST_METRICS)
    level: Level = "turn"
    speaker: Name | None = None


class PlannedMetric(BaseModel):
    """A metric that will be computed."""

    alias: str
    drawing: Literal["arcs", "graph"] | None = Field(
        description="How a page draws its explanations."
    )
    columns: list[ColumnAbout]


class PlanAnswer(BaseModel):
    """What will be computed."""

    metrics: list[PlannedMetric]
    signature: str


class Ready(BaseModel):
    """Whether the networks are loaded."""

    ready: bool
    reason: str | None = None


JobStatus = Literal["queued", "running", "done", "failed"]


class Job(BaseModel):
    """A file that is scored in the background."""

    id: str
    name: str = Field(description="Of the file.")
    status: JobStatus
    metrics: list[str]
    level: Level
    speaker: str | None
    percentiles: bool
    explain: bool
    text: bool
    input_format: str | None = Field(default=None, description="Told from the content if none.")
    columns: dict[str, str] = Field(default_factory=dict)
    out: str = Field(description="Format of the result.")
    created: float = Field(description="Seconds since 1970, as all times.")
    finished: float | None = None
    size: int = Field(description="Bytes of the file.")
    done: int = Field(default=0, description="Bytes whose records are scored.")
    rows: int = 0
    skipped: int = Field(default=0, description="Records that cannot be used.")
    notes: list[str] = Field(default_factory=list, description="Why, of the first ones.")
    error: str | None = None
    signature: str | None = None


class Jobs(BaseModel):
    """All jobs, the newest first."""

    jobs: list[Job]
