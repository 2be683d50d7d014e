"""A language model as judge: a rating, or the probability of a yes, for every reply.

Unlike the baselines in CausalScore's table (ratings by ChatGPT and GPT-4), the score is the
expectation over the possible answers (as in G-Eval), from their probabilities after the prompt.
A local judge generates nothing, so nothing has to be parsed; a remote one returns probabilities
or, if it does not, its answer is parsed strictly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import fmean
from typing import TYPE_CHECKING, Any

from causerie.dialogue import Exchange
from causerie.engines.choices import Question, answer_log_probabilities
from causerie.engines.dialoguetree import DialogueTree, by_dialogue
from causerie.errors import CauserieError
from causerie.metrics.base import Column, Level, Metric, Score, Scores
from causerie.metrics.judge.prompts import PAIRS, Prompt, read_prompt
from causerie.metrics.judge.readings import Reading, read_choices
from causerie.options import option

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.engines.chat import Chat, Endpoint
    from causerie.engines.completion import Choice

_TOO_LONG = "the prompt and the reply exceed the language model's window"
_TOP = 20
"""Number of alternatives requested from an endpoint: the most that OpenAI returns."""
_LOCAL = ("prompt", "model", "history")
"""Options that also apply without an endpoint."""
_NUMBERS = ("history", "samples", "temperature", "max_tokens", "logprobs")
"""Options that affect the scores, besides the prompt and the model."""

Found = list[Reading | str]
"""A reading for each question of a prompt, or the reason why there is none."""


@dataclass(frozen=True)
class Judge(Metric):
    """Scores replies by asking a language model."""

    prompt: str = option(
        "rating", "rating, likert, stars, yes-no, checklist, or a .toml file of your own"
    )
    model: str | None = option(
        None,
        "name, folder or hub name of a language model, such as qwen2.5-coder-1.5b [the one of "
        "--lm]; with url, the endpoint's name for it",
    )
    history: int | None = option(None, "number of context turns that the judge sees [all]", least=1)
    url: str | None = option(None, "OpenAI-compatible endpoint, as in https://api.openai.com/v1")
    key_env: str = option("OPENAI_API_KEY", "environment variable with the endpoint's key")
    samples: int = option(1, "answers per question, which are averaged", least=1)
    temperature: float | None = option(
        None, "temperature of answers [0 for one sample, 1 for several]"
    )
    max_tokens: int = option(16, "maximum tokens per answer; reasoning models need more", least=1)
    logprobs: bool = option(True, "ask for the probabilities of the possible answers")
    concurrency: int = option(8, "number of questions in flight", least=1)
    per_minute: int | None = option(
        None, "maximum number of questions per minute [no limit]", least=1
    )
    retries: int = option(5, "further attempts if the endpoint fails", least=0)
    timeout: float = option(60.0, "seconds to wait for an answer", least=0.01)
    price_in: float | None = option(None, "price per million tokens sent", least=0)
    price_out: float | None = option(None, "price per million tokens of answers", least=0)
    max_cost: float | None = option(None, "maximum cost of a run, by these prices", least=0)
    answers: str | None = option(
        None, "file in which the endpoint's answers are cached [in the platform's cache folder]"
    )

    name = "judge"
    summary = "what a language model says when it is asked how good the response is"
    needs = frozenset({"language model"})

    def __post_init__(self) -> None:
        super().__post_init__()
        remote = [one for one in fields(self) if one.name not in _LOCAL]
        if self.url is None:
            if idle := [o.name for o in remote if getattr(self, o.name) != o.default]:
                raise CauserieError(f"{idle[0]} has no effect on a judge without url")
            return
        if not self.model:
            raise CauserieError("a judge with url needs model: the endpoint's name for it")
        if (self.price_in is None) != (self.price_out is None):
            raise CauserieError("price_in and price_out belong together: give both or neither")
        if self.max_cost is not None and self.price_in is None:
            raise CauserieError(
                "max_cost needs prices: give judge.price_in and judge.price_out, per million tokens"
            )

    def columns(self, level: Level) -> tuple[Column, ...]:
        return (Column(help=self.summary, range=read_prompt(self.prompt).range),)

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        prompt = read_prompt(self.prompt)
        asked = [prompt.about(e, [e.response.text], self.history) for e in exchanges]
        if self.url is not None:
            found = self._ask_endpoint(prompt, asked, engines)
        else:
            engine = engines.named_likelihood(self.model)
            places = {id(e): i for i, e in enumerate(exchanges)}

            def answer(tree: DialogueTree, own: Sequence[Exchange]) -> list[Found]:
                questions = [asked[places[id(e)]] for e in own]
                return self._ask_locally(prompt, questions, engines, tree.scope)

            found = by_dialogue(exchanges, engine.format, answer)
        return [(_score(readings, prompt, explain),) for readings in found]

    def preferences(
        self, pairs: Sequence[tuple[Exchange, str]], engines: Engines
    ) -> list[tuple[float, float] | str]:
        """Return the probabilities that another text is better than an exchange's own response.

        Judges favour a position, so every pair is shown in both orders: the first probability is
        with the other text in second place, the second with it in first place. A text in place of
        the two says why there are none.
        """
        prompt = read_prompt(PAIRS)
        asked = [
            prompt.about(exchange, replies, self.history)
            for exchange, other in pairs
            for replies in ([exchange.response.text, other], [other, exchange.response.text])
        ]
        if self.url is not None:
            found = self._ask_endpoint(prompt, asked, engines)
        else:
            both = (asked[i : i + 2] for i in range(0, len(asked), 2))
            found = [one for own in both for one in self._ask_locally(prompt, own, engines)]
        return [
            _preference(first, second)
            for (first,), (second,) in zip(found[::2], found[1::2], strict=True)
        ]

    def _ask_locally(
        self,
        prompt: Prompt,
        asked: Sequence[Sequence[Question]],
        engines: Engines,
        scope: bytes = b"",
    ) -> list[Found]:
        """Read each answer's log-probability after the prompt, in one pass per prompt."""
        engine = engines.named_likelihood(self.model)
        questions = [question for own in asked for question in own]
        found = iter(
            answer_log_probabilities(engine, prompt.opening, questions, prompt.spellings, scope)
        )
        answered = ([next(found) for _ in own] for own in asked)
        return [[_TOO_LONG if a is None else Reading.of(a.tolist()) for a in o] for o in answered]

    def _ask_endpoint(
        self, prompt: Prompt, asked: Sequence[Sequence[Question]], engines: Engines
    ) -> list[Found]:
        requests = [self._request(prompt, question) for own in asked for question in own]
        found = iter(_sampled(engines.chat(self._endpoint(engines)), requests, self.samples))
        answered = ([next(found) for _ in own] for own in asked)
        return [[a if isinstance(a, str) else read_choices(a, prompt) for a in o] for o in answered]

    def _request(self, prompt: Prompt, question: Question) -> dict[str, Any]:
        default = 0.0 if self.samples == 1 else 1.0
        asked: dict[str, Any] = {
            "model": self.model,
            "messages": prompt.messages(question),
            "max_tokens": self.max_tokens,
            "temperature": default if self.temperature is None else self.temperature,
        }
        return {**asked, "logprobs": True, "top_logprobs": _TOP} if self.logprobs else asked

    def _endpoint(self, engines: Engines) -> Endpoint:
        from causerie.engines.budget import Price
        from causerie.engines.chat import Endpoint

        price = None
        if self.price_in is not None and self.price_out is not None:
            price = Price(self.price_in, self.price_out)
        return Endpoint(
            self.url or "",
            self.key_env,
            self.concurrency,
            self.per_minute,
            self.retries,
            self.timeout,
            price,
            self.max_cost,
            self.answers,
            engines.settings.offline,
        )

    @property
    def uses(self) -> frozenset[str]:
        if self.url is not None:
            return frozenset()
        return super().uses - {"lm"} if self.model else super().uses

    def signature(self, engines: Engines) -> str:
        parts = [self._with_options(), read_prompt(self.prompt).label]
        if self.url is None:
            parts.append(engines.signature("language model", self.model))
        else:
            parts.append(f"{self.model} at {self._endpoint(engines).shown}")
        return "|".join(parts)

    @property
    def _told_elsewhere(self) -> frozenset[str]:
        return frozenset(one.name for one in fields(self) if one.name not in _NUMBERS)


def _sampled(
    chat: Chat, requests: Sequence[Mapping[str, Any]], samples: int
) -> list[Sequence[Choice] | str]:
    """Return `samples` answers to each request, or the reason why there are none.

    Several are requested at once, so that the prompt is paid for once. An endpoint that returns
    fewer is asked for the rest.
    """
    found: list[list[Choice]] = [[] for _ in requests]
    refused: dict[int, str] = {}
    while still := [i for i, own in enumerate(found) if len(own) < samples and i not in refused]:
        asked = []
        for i in still:
            count = samples - len(found[i])
            asked.append({**requests[i], "n": count} if count > 1 else requests[i])
        for i, answer in zip(still, chat.ask(asked), strict=True):
            found[i] += answer.choices[: samples - len(found[i])]
            if answer.refusal is not None:
                refused[i] = f"the endpoint refuses to answer ({answer.refusal})"
    return [refused.get(i) or own for i, own in enumerate(found)]


def _score(found: Found, prompt: Prompt, explain: bool) -> Score:
    """Return the mean over the questions, all of which must have an answer."""
    if reasons := [one for one in found if isinstance(one, str)]:
        return Score.unscored(reasons[0])
    readings = [one for one in found if isinstance(one, Reading)]
    values = [one.value(prompt) for one in readings]
    return Score.of(fmean(values), _explanation(readings, values, prompt) if explain else None)


def _explanation(
    readings: Sequence[Reading], values: Sequence[float], prompt: Prompt
) -> dict[str, Any]:
    names = [spelled[0] for spelled in prompt.spellings]
    return {
        "prompt": prompt.label,
        "questions": [
            {
                "question": question,
                "value": value,
                "probabilities": dict(zip(names, reading.probabilities, strict=True)),
                "mass": reading.mass,
            }
            for question, value, reading in zip(prompt.questions, values, readings, strict=True)
        ],
    }


def _preference(first: Reading | str, second: Reading | str) -> tuple[float, float] | str:
    """Combine the readings of both orders; in the second one the replies are swapped."""
    if isinstance(first, str):
        return first
    if isinstance(second, str):
        return second
    return first.probabilities[1], second.probabilities[0]
