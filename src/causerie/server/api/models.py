"""The data of requests and answers, from which OpenAPI is generated."""

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
    """A request; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


class Wanted(Strict):
    """The fields of all requests for scores."""

    metrics: list[Name] | None = Field(
        default=None,
        max_length=MOST_METRICS,
        description="Aliases of metrics that this server offers; all by default.",
    )
    speaker: Name | None = Field(
        default=None,
        description="Whose responses to score: a name, a role, or `all`; by default those of the "
        "system, if it is known who that is.",
    )
    columns: dict[Name, Name] = Field(
        default_factory=dict,
        max_length=50,
        description="The records' own names of fields, where they differ.",
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
        default=None, description="One conversation in the format of OpenAI."
    )
    data: list[Json] | dict[str, Json] | None = Field(
        default=None,
        description="Alternatively a record as `causerie score` reads it, or a list of records, of "
        "lists of messages, or of lists of strings.",
    )
    level: Level = "turn"
    turns: Literal["all", "last"] | list[list[Annotated[int, Field(ge=0, le=10**6)]]] = Field(
        default="all",
        description="Which responses: all, the last one of each record, or a list of indices "
        "(from 0) for each record.",
    )
    percentiles: bool = Field(default=False, description="Add percentiles among human responses.")
    explain: bool = Field(default=False, description="Add explanations.")
    text: bool = Field(default=True, description="Add the text of the responses.")


class Skipped(BaseModel):
    """A record that could not be used."""

    record: int | None
    reason: str


class ScoreAnswer(BaseModel):
    """Rows as written by `causerie score`."""

    columns: list[str]
    rows: list[dict[str, Json]] = Field(
        description="Values by column, and `unscored`: why values are missing, by column."
    )
    skipped: list[Skipped]
    signature: str = Field(description="Everything except the input that determines the numbers.")

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
    """Responses of an old system a and a new system b."""

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
    """The result of a comparison; differences are b minus a."""

    model_config = ConfigDict(extra="allow")

    how: str
    pairs: int | None
    columns: list[dict[str, Json]]
    signature: str


class ColumnAbout(BaseModel):
    """A description of one column of a metric."""

    column: str
    help: str
    better: Literal["higher", "lower"] | None
    range: tuple[float | None, float | None]
    unit: str
    sentinel: bool
    calibrated: bool = Field(description="Whether it has percentiles among human responses.")
    limit: float | None = Field(description="Probabilities above it count as a detected fault.")


class MetricAbout(BaseModel):
    """A metric that this server offers."""

    alias: str
    metric: str
    summary: str
    needs: list[str]
    columns: dict[Level, list[ColumnAbout]]


class MetricsAnswer(BaseModel):
    """The metrics that can be requested."""

    metrics: list[MetricAbout]
    signature: str


class PlanRequest(Strict):
    """A plan to check before a request."""

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
    """What a request would compute."""

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
    name: str = Field(description="Name of the file.")
    status: JobStatus
    metrics: list[str]
    level: Level
    speaker: str | None
    percentiles: bool
    explain: bool
    text: bool
    input_format: str | None = Field(default=None, description="Detected from content if none.")
    columns: dict[str, str] = Field(default_factory=dict)
    out: str = Field(description="Format of the result.")
    created: float = Field(description="Seconds since 1970, like all times.")
    finished: float | None = None
    size: int = Field(description="Bytes of the file.")
    done: int = Field(default=0, description="Bytes whose records are scored.")
    rows: int = 0
    skipped: int = Field(default=0, description="Number of unusable records.")
    notes: list[str] = Field(default_factory=list, description="Reasons for the first.")
    error: str | None = None
    signature: str | None = None


class Jobs(BaseModel):
    """All jobs, newest first."""

    jobs: list[Job]
