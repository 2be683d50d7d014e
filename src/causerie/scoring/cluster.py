"""One run of `causerie score --runner ray`: the same rows, made by many workers.

Ray Data does the work: tasks read the inputs with causerie's own readers and cut them into chunks,
and actors, each with a warm scorer, write the parts (`causerie.scoring.parts`). The driver hears
what became of each chunk and keeps a line about it, so its memory stays flat. Whatever dies, the
next call goes on: Ray starts workers that were killed again, and a part that is there is done.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from causerie.errors import CauserieError
from causerie.io import Folder, Record, check_inputs, read
from causerie.io.addresses import expand, is_address
from causerie.io.tables import is_table
from causerie.progress import Progress, Watch, ignore
from causerie.scoring.files import Inputs
from causerie.scoring.parts import Chunk, Job, Told, Worker, check_folder, chunks_of, finish
from causerie.scoring.summary import check_page
from causerie.scoring.table import Layout

if TYPE_CHECKING:
    from types import TracebackType

    import pyarrow
    from typing_extensions import Self

    from causerie.scoring.plan import Plan
    from causerie.scoring.summary import Summary

Source: TypeAlias = "Inputs | Sequence[Record]"
"""What is scored: files, or records in memory."""
OBJECT_STORE = 2**29
"""Bytes for chunks on their way, where the cluster is one that is started here."""
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # they would go out to the network
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # what Ray itself mends is nothing for a terminal
}
READERS = 4
"""Inputs that are read at a time, at most; scoring is what takes long."""


@dataclass(frozen=True)
class Cluster:
    """Where a run is to take place."""

    address: str | None = None
    """Of a Ray cluster; None: the one this process has joined, or else this machine."""
    workers: int | None = None
    """None: as many as there are processors for."""

    @contextmanager
    def joined(self, threads: int) -> Iterator[int]:
        """Be part of the cluster, and know how many workers of so many threads to ask for."""
        ray = _ray()
        if ray.is_initialized():
            yield self._workers(threads)
            return
        here = None if self.address else (self.workers or _processors() // threads or 1) * threads
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        before = signal.getsignal(signal.SIGTERM)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ray.init(
                    self.address or "local",
                    num_cpus=here,
                    object_store_memory=OBJECT_STORE if here else None,
                    include_dashboard=False if here else None,
                    logging_level=logging.ERROR,
                    log_to_driver=False,
                )
        except Exception as error:  # of any kind
            where = self.address or "this machine"
            raise CauserieError(f"there is no Ray at {where} ({_line(error)}): check it") from error
        try:
            if before is not None and signal.getsignal(signal.SIGTERM) is not before:
                signal.signal(signal.SIGTERM, before)  # Ray has its own idea of how to end
            yield self._workers(threads)
        finally:
            ray.shutdown()

    def _workers(self, threads: int) -> int:
        have = int(_ray().cluster_resources().get("CPU", 0)) // threads
        wanted = self.workers or have
        if not 0 < wanted <= have:
            raise CauserieError(
                f"the cluster has processors for {have} workers of {threads} threads, not for "
                f"{wanted or 'one'}: choose another --num-workers"
            )
        return wanted


class ClusterRun:
    """Scores all records into a folder of parts; what `Run` is for one process.

    A run is used in a `with` block. The parts of one that was interrupted stay where they are.
    """

    def __init__(
        self,
        layout: Layout,
        source: Source,
        out: str,
        cluster: Cluster | None = None,
        *,
        report: Path | None = None,
        talks: bool = False,
        strict: bool = False,
        force: bool = False,
    ) -> None:
        """With `talks`, a page can be written afterwards, even if none is named now."""
        self._cluster, self._source = cluster or Cluster(), source
        self._title = source.title if isinstance(source, Inputs) else f"{len(source):,} records"
        self._threads = layout.plan.settings.threads or 1
        settings = replace(layout.plan.settings, threads=self._threads)
        plan = replace(layout.plan, settings=settings)
        folder = Folder(out if is_address(out) else os.path.abspath(out))
        self.job = Job(replace(layout, plan=plan), folder, talks or report is not None)
        self.report, self.strict, self.force = report, strict, force
        self.summary: Summary | None = None
        self._talks: list[Any] = []
        self._told: list[Told] = []
        self._names: list[str] = []

    def __enter__(self) -> Self:
        """Check inputs and outputs; starts nothing."""
        _check_plan(self.job.layout.plan)
        if is_table(self.job.folder.path):
            raise CauserieError(
                f"{self.job.folder.path} is called like a file: a run on Ray writes a folder"
            )
        if isinstance(self._source, Inputs):
            self._source = self._expanded(self._source)
        if self.report is not None:
            check_page(self.report)
            if self.job.layout.plan.level != "turn" or not self.job.layout.text:
                raise CauserieError("a report shows turns and their text: leave one or other out")
        self._earlier = check_folder(self.job.folder, self.force)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Nothing is held."""

    @property
    def kept(self) -> bool:
        """Whether the next run can go on from what this one has scored."""
        return bool(self._told or self._earlier)

    def execute(self, watch: Watch = ignore) -> Summary:
        """Have everything scored that is not there yet, and put it together."""
        if self._earlier:
            note = f"{self._earlier} parts of an earlier run are there: what belongs is kept"
            watch(Progress("scoring", note=note))
        total = self._source.size if isinstance(self._source, _Files) else None
        watch(Progress("starting workers", 0, total, "bytes"))
        done = items = found = 0
        with self._cluster.joined(self._threads) as workers, _quiet():
            for told in self._tellings(workers):
                self._told.append(replace(told, skipped=()))
                done, items, found = done + told.bytes, items + told.items, found + told.found
                for bad in told.skipped:
                    if self.strict:
                        raise CauserieError(f"{bad} (stopped here because of --strict)")
                    watch(Progress("scoring", note=f"skipped {bad}"))
                detail = f"{items:,} rows in {len(self._told):,} parts"
                watch(Progress("scoring", done, total, "bytes", detail))
        note = f"{len(self._told)} parts in {self.job.folder.path}"
        note += f", {found} of them from before" if found else ""
        watch(Progress("scoring", note=note))
        watch(Progress("putting the parts together", done, total, "bytes"))
        inputs = self._source.paths if isinstance(self._source, _Files) else ["memory"]
        self._names = [t.name for t in sorted(self._told, key=lambda t: (t.input, t.number))]
        self.summary, self._talks = finish(self.job, self._names, inputs)
        if self.strict and self.summary.rejected:
            raise CauserieError(f"{self.summary.rejected} bad records (found because of --strict)")
        return self.summary

    def write(self) -> list[Path]:
        """Write the page, if it is wanted; the parts are there already."""
        if self.report is None:
            return []
        self.write_page(self.report)
        return [self.report]

    def write_page(self, path: Path) -> None:
        """Write the page that shows what was scored."""
        assert self.summary is not None, "nothing has been executed"
        self.summary.write_page(path, self.job.layout.plan, self._talks, self._title)

    def parts(self) -> Iterator[pyarrow.Table]:
        """The rows, part by part, in the order of the inputs."""
        import pyarrow.parquet as pq

        for name in self._names:
            with self.job.folder.open(name) as file:
                yield pq.read_table(file).replace_schema_metadata()

    def _tellings(self, workers: int) -> Iterator[Told]:
        """What the workers tell of each chunk, in the order in which they finish."""
        import ray.data

        # A pair of tasks and actors with different needs is not fused: one reader feeds them all.
        chunks = ray.data.read_datasource(
            _datasource(self._source), num_cpus=0, override_num_blocks=READERS
        )
        parts = chunks.map_batches(
            _Actor,
            fn_constructor_args=(self.job,),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=workers),
            num_cpus=self._threads,
        )
        for row in parts.iter_rows():
            told = pickle.loads(row["told"])
            if isinstance(told, Told):
                yield told
            else:
                message, number = told
                raise CauserieError(message) from (OSError(number, message) if number else None)

    def _expanded(self, inputs: Inputs) -> _Files:
        """The inputs by name, each of which is there."""
        if inputs.limit is not None:
            raise CauserieError("--limit has no effect with --runner ray: leave it out")
        if "-" in inputs.paths:
            raise CauserieError("--runner ray reads files, not standard input: name them")
        found = [one for pattern in inputs.paths for one in expand(pattern)]
        local = [path for path, _ in found if not is_address(path)]
        check_inputs(local, inputs.format, inputs.columns)
        paths, size = tuple(path for path, _ in found), sum(size for _, size in found)
        return _Files(paths, inputs.format, None, inputs.columns, size, os.getcwd())


@dataclass(frozen=True)
class _Files(Inputs):
    """Inputs that were found."""

    bytes: int = 0
    home: str = ""
    """The folder that relative names start from; workers may have been started elsewhere."""

    @property
    def size(self) -> int | None:
        return self.bytes

    def chunks(self, number: int) -> Iterator[Chunk]:
        """Those of one of the files."""
        with suppress(OSError):  # without that folder, reading says what is missing
            os.chdir(self.home)
        read_so_far = 0

        def watch(position: int) -> None:
            nonlocal read_so_far
            read_so_far = position

        records = read(self.paths[number], self.format, watch, self.columns)
        return chunks_of(records, number, lambda: read_so_far)


class _Actor:
    """A worker as Ray Data wants it. What goes wrong is told like anything else."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._worker: Worker | None = None

    def __call__(self, batch: Any) -> Any:
        chunk = pickle.loads(batch["chunk"][0])
        if isinstance(chunk, Chunk):
            self._worker = self._worker or Worker(self._job)
            chunk = _caught(partial(self._worker.score, chunk))
        return {"told": [pickle.dumps(chunk)]}


def _caught(work: Callable[[], Any]) -> Any:
    """What work gives, or why it could not be done and the number of the system's error."""
    try:
        return work()
    except (CauserieError, OSError) as error:
        cause: BaseException | None = error
        while cause is not None and not (isinstance(cause, OSError) and cause.errno):
            cause = cause.__cause__
        return str(error), getattr(cause, "errno", None)


def _chunks(source: Source, numbers: range) -> Iterator[Any]:
    """The chunks of some of the inputs, each as a table of one cell.

    They only ever go from one process of this run to another, so they are pickled.
    """
    import pyarrow as pa

    def all_of() -> Iterator[Chunk]:
        if isinstance(source, _Files):
            for number in numbers:
                yield from source.chunks(number)
        else:
            yield from chunks_of(source)  # type: ignore[arg-type]

    chunks = all_of()
    while (found := _caught(partial(next, chunks, None))) is not None:
        yield pa.table({"chunk": pa.array([pickle.dumps(found)], pa.large_binary())})
        if not isinstance(found, Chunk):
            return


def _datasource(source: Source) -> Any:
    """The source as Ray Data reads it, several inputs at a time."""
    from ray.data.block import BlockMetadata
    from ray.data.datasource import Datasource, ReadTask

    class Chunks(Datasource):  # type: ignore[misc]  # it has no types
        def estimate_inmemory_data_size(self) -> int | None:
            return None

        def get_read_tasks(self, parallelism: int, *_: Any, **__: Any) -> list[Any]:
            count = len(source.paths) if isinstance(source, _Files) else 1
            many = min(parallelism, count)
            about = BlockMetadata(None, None, None, None)
            return [
                ReadTask(partial(_chunks, source, range(first, count, many)), about)
                for first in range(many)
            ]

    return Chunks()


@contextmanager
def _quiet() -> Iterator[None]:
    """Ray Data without bars and messages of its own, and every chunk by itself."""
    from ray.data import DataContext

    logger = logging.getLogger("ray.data")
    level, before = logger.level, DataContext.get_current()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about settings that nobody has chosen
        chosen = before.copy()
    chosen.enable_progress_bars = False
    chosen.target_max_block_size = chosen.target_min_block_size = 1
    DataContext._set_current(chosen)
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        DataContext._set_current(before)
        logger.setLevel(level)


def _check_plan(plan: Plan) -> None:
    if plan.settings.device.startswith("cuda"):
        raise CauserieError("the workers of --runner ray compute on processors: leave --device out")
    if plan.settings.backend == "auto":
        raise CauserieError(
            "workers of --runner ray might settle on different backends: name one with --backend"
        )
    for alias, metric in plan.metrics.items():
        if getattr(metric, "max_cost", None) is not None:
            raise CauserieError(
                f"--max-cost of {alias} would be the limit of each worker, not of all: leave "
                "--runner ray out, or the limit"
            )


def _ray() -> Any:
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise CauserieError(
            'the runner ray needs a package: pip install "causerie[ray]"'
        ) from error
    return ray


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]
