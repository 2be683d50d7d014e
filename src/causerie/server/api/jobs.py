"""Files that are scored in the background, one after the other, even if the server restarts.

A job is a folder: the uploaded file, `job.json`, and finally the table. The table comes from the
same run as that of `causerie score`, with its journal, so a job that was interrupted when the
server died continues where it was. Acknowledged jobs are on disk.
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
"""Most jobs kept at a time, finished ones included."""
MOST_NOTES = 20
ATTEMPTS = 3
"""Number of times a server may die while working on a job before the job is considered at fault."""
_ID = re.compile(r"[0-9a-f]{24}")


class Jobs:
    """The jobs in a folder, and the thread that processes them."""

    def __init__(self, folder: Path, offer: Offer) -> None:
        self._folder, self._offer = folder, offer
        self._lock = RLock()
        self._jobs: dict[str, Job] = {}
        self._stops: dict[str, Event] = {}
        """Events by job that stop a running job when set."""
        self._queue: SimpleQueue[str | None] = SimpleQueue()
        self._closing = False
        self._own = FileLock(folder / "lock", thread_local=False)
        self._thread = Thread(target=self._run, name="jobs", daemon=True)

    def start(self) -> None:
        """Lock the folder for this server, and continue the jobs in it."""
        try:
            self._folder.mkdir(0o700, parents=True, exist_ok=True)
            self._own.acquire(timeout=1)
        except Timeout as error:
            raise CauserieError(
                f"another server keeps its jobs in {self._folder}: give this one a different "
                "folder with --state"
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
        """Stop the running job, which the next server will continue."""
        self._closing = True
        with self._lock:
            for stop in self._stops.values():
                stop.set()
        self._queue.put(None)
        self._thread.join()
        self._own.release()

    def place(self) -> Path:
        """Return a new folder for the file of a future job; `tidy` removes it if there is none."""
        with self._lock:
            if len(self._jobs) >= MOST_JOBS:
                raise CauserieError(f"there are {MOST_JOBS} jobs already: delete finished ones")
        folder = self._folder / secrets.token_hex(12)
        (folder / "input").mkdir(0o700, parents=True)
        return folder

    def add(self, job: Job) -> Job:
        """Accept a job whose file is in its folder; from now on it is sure to be done."""
        self._keep(job)
        with self._lock:
            self._jobs[job.id] = job
        self._queue.put(job.id)
        return job

    def tidy(self, folder: Path) -> None:
        """Remove a folder if no job was made of it."""
        if not (folder / "job.json").exists():
            self._clear(folder)

    def all(self) -> list[Job]:
        with self._lock:
            return sorted(self._jobs.values(), key=lambda job: -job.created)

    def get(self, job_id: str) -> Job | None:
        with self._lock:
            return self._jobs.get(job_id)

    def remove(self, job_id: str) -> None:
        """Stop a job if it is running, and forget it."""
        with self._lock:
            if self._jobs.pop(job_id, None) is None:
                return
            if stop := self._stops.get(job_id):
                stop.set()  # its thread clears the folder
                return
        self._clear(self._folder / job_id)

    def counts(self) -> Mapping[JobStatus, int]:
        """Return the number of jobs by status."""
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
        """Do a job, or record why it cannot be done."""
        attempts = self._attempt(job)
        try:
            if attempts > ATTEMPTS:
                raise CauserieError(
                    f"the server ended {ATTEMPTS} times while working on this file: split it"
                )
            self._update(job.id, status="running")
            self._score(job, stop)
        except ClosedError:
            self._attempt(job, forget=True)
        except Exception as error:
            told = str(failure_of(error)).replace(str(self.input_of(job)), job.name)
            with suppress(CauserieError):  # the disk may be full, which may be the very failure
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
            if not gets_on:  # progress: this job is not what ended the server before
                self._attempt(job, forget=True)
                gets_on = True
            self._show(job.id, done=int(progress.done), rows=run.summary.items)

        # rows that an earlier attempt has written are written again
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
        """Count an attempt on disk before it is made, and return the number of attempts."""
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
        """Return the job in a folder; remove the remains of one that was never acknowledged."""
        if not (folder.is_dir() and _ID.fullmatch(folder.name)):
            return None
        try:
            return Job.model_validate(json.loads((folder / "job.json").read_text("utf-8")))
        except FileNotFoundError:
            self._clear(folder)
        except (OSError, ValueError):
            pass  # left for inspection
        return None

    def _clear(self, folder: Path) -> None:
        (folder / "job.json").unlink(missing_ok=True)  # first: without it, there is no job
        shutil.rmtree(folder, ignore_errors=True)


def base_of(name: str) -> str:
    """Return the last part of a client's file name."""
    base = re.split(r"[/\\]", name)[-1]
    if base in ("", ".", "..") or not base.isprintable() or len(base.encode()) > 200:
        raise CauserieError("name must be a file name: send ?name=conversations.jsonl")
    return base
