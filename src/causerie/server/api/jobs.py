"""Files that are scored in the background, one after the other, whatever happens to the server.

A job is a folder: the file as it came, `job.json`, and at the end the table. The table is made by
the same run as that of `causerie score`, with its journal, so a job that a dying server left
behind goes on where it was. What is acknowledged is on disk.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Event, RLock, Thread

from filelock import FileLock, Timeout

from causerie.errors import CauserieError
from causerie.io import write_table, write_whole
from causerie.progress import Progress
from causerie.scoring import Inputs, Layout, Run
from causerie.server.api.batching import ClosedError, failure_of
from causerie.server.api.models import Job, JobStatus
from causerie.server.api.service import Offer, QueuedScorer

MOST_JOBS = 1000
"""Kept at a time, finished ones too."""
MOST_NOTES = 20
ATTEMPTS = 3
"""How often a server may die while it works on a job before the job is to blame."""
_ID = re.compile(r"[0-9a-f]{24}")


class Jobs:
    """The jobs in a folder, and the thread that works them off."""

    def __init__(self, folder: Path, offer: Offer) -> None:
        self._folder, self._offer = folder, offer
        self._lock = RLock()
        self._jobs: dict[str, Job] = {}
        self._stops: dict[str, Event] = {}
        """Set to end a job that runs."""
        self._queue: SimpleQueue[str | None] = SimpleQueue()
        self._closing = False
        self._own = FileLock(folder / "lock", thread_local=False)
        self._thread = Thread(target=self._run, name="jobs", daemon=True)

    def start(self) -> None:
        """Take the folder for this server, and go on with what is in it."""
        try:
            self._folder.mkdir(0o700, parents=True, exist_ok=True)
            self._own.acquire(timeout=1)
        except Timeout as error:
            raise CauserieError(
                f"another server keeps its jobs in {self._folder}: give this one its own folder "
                "with --state"
            ) from error
        except OSError as error:
            raise CauserieError(
                f"{self._folder} cannot be written to ({error.strerror}): name another --state"
            ) from error
        found = [job for place in self._folder.iterdir() if (job := self._read(place))]
        for job in sorted(found, key=lambda job: job.created):
            self._jobs[job.id] = job
            if job.status in ("queued", "running"):
                self._queue.put(job.id)
        self._thread.start()

    def close(self) -> None:
        """End the job that runs, which the next server goes on with."""
        self._closing = True
        with self._lock:
            for stop in self._stops.values():
                stop.set()
        self._queue.put(None)
        self._thread.join()
        self._own.release()

    def place(self) -> Path:
        """A new folder, for the file of a job that is to be; `tidy` it if it will not."""
        with self._lock:
            if len(self._jobs) >= MOST_JOBS:
                raise CauserieError(f"{MOST_JOBS} jobs are kept: delete some that are done")
        folder = self._folder / secrets.token_hex(12)
        (folder / "input").mkdir(0o700, parents=True)
        return folder

    def add(self, job: Job) -> Job:
        """Take a job whose file is in its folder; from now on it will be done."""
        self._keep(job)
        with self._lock:
            self._jobs[job.id] = job
        self._queue.put(job.id)
        return job

    def tidy(self, folder: Path) -> None:
        """Remove a folder that became no job."""
        if not (folder / "job.json").exists():
            self._clear(folder)

    def all(self) -> list[Job]:
        with self._lock:
            return sorted(self._jobs.values(), key=lambda job: -job.created)

    def get(self, job_id: str) -> Job | None:
        with self._lock:
            return self._jobs.get(job_id)

    def remove(self, job_id: str) -> None:
        """End a job, if it runs, and forget it."""
        with self._lock:
            if self._jobs.pop(job_id, None) is None:
                return
            if stop := self._stops.get(job_id):
                stop.set()  # its thread clears the folder
                return
        self._clear(self._folder / job_id)

    def counts(self) -> Mapping[JobStatus, int]:
        """How many jobs there are of each status."""
        statuses: list[JobStatus] = ["queued", "running", "done", "failed"]
        known = [job.status for job in self.all()]
        return {status: known.count(status) for status in statuses}

    def input_of(self, job: Job) -> Path:
        return self._folder / job.id / "input" / base_of(job.name)

    def result_of(self, job: Job) -> Path:
        return self._folder / job.id / f"scores.{job.out}"

    def _run(self) -> None:
        while (job_id := self._queue.get()) is not None:
            stop = Event()
            with self._lock:
                job = self._jobs.get(job_id)
                if job is None or self._closing:
                    continue
                self._stops[job_id] = stop
            try:
                self._work(job, stop)
            finally:
                with self._lock:
                    del self._stops[job_id]
                    gone = job_id not in self._jobs
                if gone:
                    self._clear(self._folder / job_id)

    def _work(self, job: Job, stop: Event) -> None:
        """Do a job, or find out why it cannot be done."""
        attempts = self._attempt(job)
        try:
            if attempts > ATTEMPTS:
                raise CauserieError(
                    f"the server ended {ATTEMPTS} times while it worked on this: split the file"
                )
            self._update(job.id, status="running")
            self._score(job, stop)
        except ClosedError:
            self._attempt(job, forget=True)
        except Exception as error:
            told = str(failure_of(error)).replace(str(self.input_of(job)), job.name)
            with suppress(CauserieError):  # of a full disk, which may be what has failed here
                self._update(job.id, status="failed", error=told, finished=time.time())

    def _score(self, job: Job, stop: Event) -> None:
        plan = self._offer.plan_of(job.metrics, job.level, job.speaker)
        layout = Layout(plan, job.percentiles, job.explain, job.text)
        scorer = QueuedScorer(self._offer, plan, stop)
        out = self.result_of(job)
        inputs = Inputs((str(self.input_of(job)),), job.input_format, columns=job.columns)
        notes: list[str] = []
        gets_on = False

        def watch(progress: Progress) -> None:
            nonlocal gets_on
            if stop.is_set():
                raise ClosedError
            if progress.note is not None:
                if progress.note.startswith("skipped ") and len(notes) < MOST_NOTES:
                    notes.append(progress.note.replace(inputs.paths[0], job.name)[:500])
                return
            if not gets_on:  # so it was not this job that ended the server before
                self._attempt(job, forget=True)
                gets_on = True
            self._show(job.id, done=int(progress.done), rows=run.summary.items)

        # what an earlier attempt wrote is written again
        with Run(scorer, inputs, layout, out=out, force=True) as run:
            summary = run.execute(watch)
            if not summary.items:
                first = f"; {notes[0]}" if notes else ""
                raise CauserieError(summary.nothing_scored(job.speaker) + first)
            rows = ({**row, "file": job.name} for row in run.rows())
            write_table(rows, list(layout.types), out, layout.types)
        self._update(
            job.id,
            status="done",
            finished=time.time(),
            done=job.size,
            rows=summary.items,
            skipped=summary.rejected,
            notes=notes,
            signature=plan.signature,
        )

    def _attempt(self, job: Job, *, forget: bool = False) -> int:
        """Count an attempt on disk, before it is made."""
        path = self._folder / job.id / "attempts"
        with suppress(OSError, ValueError):
            before = int(path.read_text()) if path.exists() else 0
            path.write_text(str(0 if forget else before + 1))
            return before + 1
        return 1

    def _show(self, job_id: str, **changes: object) -> Job | None:
        with self._lock:
            if job := self._jobs.get(job_id):
                job = self._jobs[job_id] = job.model_copy(update=changes)
            return job

    def _update(self, job_id: str, **changes: object) -> None:
        if job := self._show(job_id, **changes):
            self._keep(job)

    def _keep(self, job: Job) -> None:
        write_whole(self._folder / job.id / "job.json", job.model_dump_json(indent=1) + "\n")

    def _read(self, folder: Path) -> Job | None:
        """The job in a folder; what is left of one that was never acknowledged goes."""
        if not (folder.is_dir() and _ID.fullmatch(folder.name)):
            return None
        try:
            return Job.model_validate(json.loads((folder / "job.json").read_text("utf-8")))
        except FileNotFoundError:
            self._clear(folder)
        except (OSError, ValueError):
            pass  # somebody should look at it
        return None

    def _clear(self, folder: Path) -> None:
        (folder / "job.json").unlink(missing_ok=True)  # first: without it, there is no job
        shutil.rmtree(folder, ignore_errors=True)


def base_of(name: str) -> str:
    """The last part of the name that a client gives a file."""
    base = re.split(r"[/\\]", name)[-1]
    if base in ("", ".", "..") or not base.isprintable() or len(base.encode()) > 200:
        raise CauserieError("the name of the file must be one: send ?name=conversations.jsonl")
    return base
