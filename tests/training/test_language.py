"""Tuning a language model on conversations: rows, loss, measures, the command."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines import Engines, Settings
from causerie.engines.likelihood import Likelihood
from causerie.engines.turnformat import FORMATS
from causerie.errors import CauserieError
from causerie.metrics.followups import Fed
from causerie.metrics.followups.language import LanguageModel, statistics
from causerie.models.artifact import load_artifact
from causerie.progress import Progress, ignore
from causerie.training.corpus import Corpus
from causerie.training.language import (
    LanguageConfig,
    LanguageModelling,
    nats_per_character,
    reactions,
    reactions_found,
    row,
)
from causerie.training.trainable import TrainingRun
from terminal import run_causerie

TOPICS = ("hiking", "music", "pizza", "weather", "film", "guitar", "lake", "book")


def talk(name: str, *texts: str, roles: bool = True) -> Dialogue:
    speakers = ("user", "bot") if roles else ("A", "B")
    known = ("user", "system") if roles else (None, None)
    turns = (Turn(speakers[i % 2], text, role=known[i % 2]) for i, text in enumerate(texts))  # type: ignore[arg-type]
    return Dialogue(name, tuple(turns))


def write(path: Path, count: int, seed: int) -> Path:
    """A corpus of users who answer a bot about the bot's topic."""
    rng = random.Random(seed)
    lines = []
    for number in range(count):
        topic = rng.choice(TOPICS)
        texts = ["Hello!", f"Do you like {topic}?", f"I like {topic}.", f"Tell me about {topic}!"]
        speakers = ("user", "bot")
        turns = [{"speaker": speakers[i % 2], "text": text} for i, text in enumerate(texts)]
        lines.append(json.dumps({"id": f"{seed}-{number}", "turns": turns}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def engine(tiny_llama: Path) -> Likelihood:
    return Engines(Settings(lm=str(tiny_llama), offline=True, threads=1)).likelihood


@pytest.mark.parametrize("name", FORMATS)
def test_a_row_is_what_the_engine_scores(tiny_llama: Path, name: str) -> None:
    engines = Engines(Settings(lm=str(tiny_llama), offline=True, turn_format=name))
    engine = engines.likelihood
    dialogue = talk("d", "Do you like music?", "I do.", "Which?", "The guitar.")
    tokens, scored = row(engine.format, dialogue, 200, random.Random(0))
    with torch.no_grad():
        logits = engine.backbone.model(input_ids=torch.tensor([tokens])).logits[0]
    log_probs = logits.log_softmax(-1)
    naive = -sum(float(log_probs[place - 1, tokens[place]]) for place in scored)
    shares = nats_per_character(engine, [dialogue])
    assert shares.part[0] == pytest.approx(naive, rel=1e-4)
    assert shares.whole[0] == sum(len(turn.text) for turn in dialogue.turns)


def test_long_dialogues_begin_anywhere_and_are_cut(engine: Likelihood) -> None:
    dialogue = talk("d", *(f"We took the long trail, {n} miles." for n in range(30)))
    rows = [row(engine.format, dialogue, 64, random.Random(seed)) for seed in range(20)]
    assert max(len(tokens) for tokens, _ in rows) == 64
    assert len({tuple(tokens) for tokens, _ in rows}) > 5
    assert all(0 < place < len(tokens) for tokens, scored in rows for place in scored)


def test_unknown_roles_are_drawn(engine: Likelihood) -> None:
    dialogue = talk("d", "Hello!", "Hi.", roles=False)
    rows = {tuple(row(engine.format, dialogue, 64, random.Random(seed))[0]) for seed in range(9)}
    assert len(rows) == 2
    known = talk("d", "Hello!", "Hi.")
    rows = {tuple(row(engine.format, known, 64, random.Random(seed))[0]) for seed in range(9)}
    assert len(rows) == 1


def test_the_loss_is_nats_per_token(tiny_llama: Path, tmp_path: Path) -> None:
    backbone = Engines(Settings(lm=str(tiny_llama), offline=True)).likelihood.backbone
    corpus = Corpus.read([write(tmp_path / "talks.jsonl", 24, seed=1)])
    config = LanguageConfig(turn_format="chat", batch=3, rank=2)
    task = LanguageModelling(backbone, config, corpus, corpus)
    dialogues, rng = task.batch(0)
    loss = task.loss((dialogues, random.Random("0/0"))).item()
    engine = Likelihood(backbone, "chat")
    rows = [row(engine.format, dialogue, 192, rng) for dialogue in dialogues]
    nats = nats_per_character(engine, dialogues).part.sum()
    assert loss == pytest.approx(nats / sum(len(scored) for _, scored in rows), rel=1e-4)
    task._keeps_logits = False
    assert loss == pytest.approx(task.loss((dialogues, random.Random("0/0"))).item(), rel=1e-5)
    with torch.autocast("cpu", torch.bfloat16):
        assert loss == pytest.approx(task.loss((dialogues, random.Random("0/0"))).item(), rel=0.02)


def test_tokens_are_those_that_the_steps_saw(tiny_llama: Path, tmp_path: Path) -> None:
    backbone = Engines(Settings(lm=str(tiny_llama), offline=True)).likelihood.backbone
    corpus = Corpus.read([write(tmp_path / "talks.jsonl", 24, seed=1)])
    task = LanguageModelling(backbone, LanguageConfig(batch=3, rank=2), corpus, corpus)
    seen = []
    forward = task.module.forward
    task.module.forward = lambda **given: (
        seen.append(given["input_ids"].numel()),
        forward(**given),
    )[1]
    for step in range(4):
        task.loss(task.batch(step))
    assert task.tokens_after([2, 4]) == {2: sum(seen[:6]), 4: sum(seen)}


def test_a_training_can_be_finished_early(tiny_llama: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "talks.jsonl", 60, seed=1)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    marked = [{**line, "quality": "bad" if n % 3 == 0 else "good"} for n, line in enumerate(lines)]
    path.write_text("\n".join(map(json.dumps, marked)))

    def stop(progress: Progress) -> None:
        if progress.done == 5:
            raise KeyboardInterrupt

    run = TrainingRun(
        config=LanguageConfig(rank=2, batch=2, epochs=2, validate_every=2),
        data=(path,),
        valid=(),
        folder=tmp_path / "mine.training",
        without={"quality": frozenset({"bad"})},
        watch=stop,
    )
    engines = Engines(Settings(lm=str(tiny_llama), offline=True))
    with pytest.raises(KeyboardInterrupt):
        LanguageModel.train(engines, run)
    engines = Engines(Settings(lm=str(tiny_llama), offline=True))
    finished = replace(run, watch=ignore, resume=True, finish=True)
    artifact, _ = LanguageModel.train(engines, finished)
    assert "without records that have `quality=bad`" in artifact.card
    assert "| dialogues to train on | 30 |" in artifact.card
    assert "| steps | 4 |" in artifact.card  # the last that was kept
    curve = [line for line in artifact.card.splitlines() if "of the validation, after" in line]
    assert len(curve) == 2
    tokens = next(x for x in artifact.card.splitlines() if "tokens that the steps saw" in x)
    assert f"after {tokens.split('|')[2].strip()} tokens" in curve[-1]
    assert (tmp_path / "mine.training" / "learning-curve.svg").read_text().count("polyline") == 3


def test_a_step_sees_no_more_than_the_network_can(tiny_gpt2: Path, tmp_path: Path) -> None:
    backbone = Engines(Settings(lm=str(tiny_gpt2), offline=True)).likelihood.backbone
    long = talk("d", *(f"We took the long trail, {n} miles." for n in range(40)))
    corpus = Corpus(((long,) * 3,))
    config = LanguageConfig(turn_format="eos", batch=1, rank=2, longest=192)
    assert backbone.window < config.longest
    task = LanguageModelling(backbone, config, corpus, corpus)
    assert task.loss(([long], random.Random(0))).isfinite()


def test_reactions_are_users_to_the_system() -> None:
    corpus = Corpus(
        (
            (
                talk("a", "Hello!", "Do you like music?", "I do.", "Which?"),
                talk("b", "Hi.", "Really?", "Tell me more!"),
                talk("c", "Hi.", "Really?", "Not me.", roles=False),
            ),
        )
    )
    long = [talk(str(n), *(f"{n} {turn}" for turn in range(20))) for n in range(2)]
    for item in reactions(Corpus((tuple(long),)), 0):
        names = {exchange.response.text[0] for exchange in item[1:]}
        assert names == {"1" if item[0].response.text[0] == "0" else "0"}
    items = reactions(corpus, 0)
    assert [item[0].response.text for item in items] == ["I do.", "Tell me more!"]
    assert {e.response.text for e in items[0][1:]} == {"Tell me more!"}


def test_reactions_compete_with_those_of_their_own_source_each_text_once() -> None:
    one = tuple(talk(f"one{n}", "Hi.", "So?", f"{text} one") for n, text in enumerate("abA"))
    two = tuple(talk(f"two{n}", "Hi.", "So?", f"{n} two") for n in range(4))
    for item in reactions(Corpus((one, two)), 0):
        texts = [exchange.response.text for exchange in item]
        assert len({text.split()[1] for text in texts}) == 1
        assert len({text.lower() for text in texts}) == len(texts)


def test_statistics_are_of_people_where_there_are_some(tiny_llama: Path) -> None:
    engines = Engines(Settings(lm=str(tiny_llama)))
    people = tuple(talk(f"p{n}", "Hello.", f"{n} hats?", "Yes!", roles=False) for n in range(4))
    bots = tuple(talk(f"b{n}", "Hello.", f"I am bot {n}.", "No!") for n in range(4))
    found = statistics(engines, Corpus((people, bots)), 0)
    alone = statistics(engines, Corpus((people,)), 0)
    other = statistics(engines, Corpus((bots,)), 0)
    assert found.keys() == alone.keys()
    for name, both in found.items():
        torch.testing.assert_close(both, alone[name])
    assert any(not torch.allclose(found[name], other[name]) for name in found)


def test_a_reaction_is_found_if_it_is_the_likeliest(engine: Likelihood) -> None:
    dialogue = talk("d", "Hello!", "Do you like music?", "I do.")
    exchange = Exchange(dialogue, 2)
    texts = ["I do.", "The weather was cold.", "Where do you work?"]
    means = []
    for text in texts:
        answered = Exchange(exchange.with_response(text).dialogue, 2)
        alone = nats_per_character(engine, [answered.dialogue]).part[0]
        before = nats_per_character(engine, [talk("d", "Hello!", "Do you like music?")]).part[0]
        tokens = engine.format.segment("user", text)
        means.append((before - alone) / (tokens.stop - tokens.start))
    best = int(np.argmax(means))
    for first in range(3):
        order = [texts[first], *(text for text in texts if text != texts[first])]
        found = reactions_found(engine, [[exchange.with_response(text) for text in order]])
        assert found.ratio() == float(first == best)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"turn_format": "xml"}, "turn_format is chat or eos or plain or null, not 'xml'"),
        ({"batch": 0}, "batch is at least 1, not 0"),
        ({"patience": 0}, "patience is at least 1, not 0"),
        ({"rank": 0}, "rank is at least 1, not 0"),
    ],
)
def test_settings_are_checked(settings: dict[str, object], message: str) -> None:
    with pytest.raises(CauserieError, match=message):
        LanguageConfig(**settings)  # type: ignore[arg-type]


def test_the_command_tunes_and_the_metrics_use_it(tmp_path: Path, tiny_llama: Path) -> None:
    write(tmp_path / "talks.jsonl", 60, seed=1)
    words = ["train", "lm", "--offline", "--threads", "1"]
    words += ["--lm", str(tiny_llama), "--data", str(tmp_path / "talks.jsonl")]
    words += ["--out", str(tmp_path / "mine"), "--licence", "public domain"]
    for setting in ("rank=4", "layers=1", "epochs=4", "learning_rate=1e-2", "batch=4"):
        words += ["--set", setting]
    done = run_causerie(*words, "--set", "turn_format=eos")
    assert done.returncode == 0, done.stderr
    artifact = load_artifact(str(tmp_path / "mine"), "lm")
    assert "tuned minus stock (eos)" in artifact.card
    assert "tuned minus stock (chat)" in artifact.card  # its own format
    assert "public domain" in artifact.card
    line = next(x for x in artifact.card.splitlines() if "nats per character, tuned minus" in x)
    assert line.split("|")[2].strip().startswith("-")  # it learned something

    engines = Engines(Settings(lm=str(tmp_path / "mine"), offline=True))
    assert engines.likelihood.format.name == "eos"
    assert artifact.sha256[:12] in engines.signature("language model")
    assert f"--lm {tiny_llama.name}" in artifact.card
    words[words.index("--lm") + 1] = str(tmp_path / "mine")
    again = run_causerie(*words, "--force")
    assert again.returncode == 2
    assert "--lm is tuned already" in again.stderr
    assert all("layers.1" in name for name in artifact.network)
    dialogue = talk("d", "Hello!", "Do you like music?")
    scores = Fed().score_exchanges([Exchange(dialogue, 1)], engines)[0]
    names = [column.name for column in Fed().columns("turn")]
    values = {name: score.value for name, score in zip(names, scores, strict=True)}
    overall = values.pop("overall")
    zs = []
    for name, value in values.items():
        mean, deviation = artifact.statistics[f"fed.turn.{name}"].tolist()
        zs.append((value - mean) / deviation)  # type: ignore[operator]
    assert overall == pytest.approx(np.mean(zs), rel=1e-3)

    plain = Engines(Settings(lm=str(tmp_path / "mine"), offline=True, turn_format="chat"))
    assert plain.likelihood.statistics == {}


def test_an_artifact_of_something_else_is_no_language_model(
    tmp_path: Path, tiny_llama: Path
) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"metric": "density"}))
    with pytest.raises(CauserieError, match="is an artifact of density, not of lm"):
        _ = Engines(Settings(lm=str(folder), offline=True)).likelihood


def test_a_folder_called_lm_is_not_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from causerie.engines.language import tuned_language_model

    folder = tmp_path / "lm"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"metric": "lm", "backbone": {}}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("causerie.engines.language.shipped", lambda name: None)
    assert tuned_language_model(Settings()) is None


def test_by_default_turns_are_as_the_network_knows_them(tmp_path: Path, tiny_llama: Path) -> None:
    path = write(tmp_path / "talks.jsonl", 60, seed=1)
    engines = Engines(Settings(lm=str(tiny_llama), offline=True))
    run = TrainingRun(
        config=LanguageConfig(rank=2, epochs=0.1),
        data=(path,),
        valid=(),
        folder=tmp_path / "mine.training",
    )
    artifact, results = LanguageModel.train(engines, run)
    assert artifact.options["turn_format"] == "chat"
    assert sum("nats per character, stock" in name for name in results) == 1


@pytest.mark.parametrize("layers", [None, 1])
def test_gpt2_is_tuned_too(tiny_gpt2: Path, layers: int | None) -> None:
    model = Engines(Settings(lm=str(tiny_gpt2), offline=True)).likelihood.backbone.model
    prepared = LanguageConfig(layers=layers).tuning.prepare(model)
    trained = [name for name, p in prepared.named_parameters() if p.requires_grad]
    assert trained
    assert all("lora" in name for name in trained)
    assert {".h.0." in name for name in trained} == ({True, False} if layers is None else {False})
