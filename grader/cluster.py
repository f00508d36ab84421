"""A crew on a Dask cluster: the only file that knows Dask. Submissions travel as bytes, outcomes come back as JSON.

Every worker needs this kit, in this version, and the isolation that is asked for; one that has not says so, and judges
nobody. A task may be done twice, when a worker is lost: that does no harm. The kit starts no cluster, and a scheduler
runs what anybody sends to it: where it listens beyond one machine, it is to be secured with TLS, as Dask's manual says.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import pickle
from typing import TYPE_CHECKING, Any, Self

from grader.rungs import strongest_rung
from grader.sandbox import way_to_mount
from grader.worker import STOP_SECONDS, grade_task

if TYPE_CHECKING:
    from concurrent.futures import Future

    from grader.notebooks import NotebookTask
    from grader.worker import Task

OLDEST = (2026, 3)
_RETRIES = 2  # by Dask itself, before the grader hears of it
_CONNECT_SECONDS = 10
_EXTRA = "install the kit's extra: pip install 'agent-state-lab[cluster]'"


class ClusterError(Exception):
    """There is no cluster to grade on: where, what, and what to do next."""


class ClusterCrew:
    """The workers of one cluster, as many as there are at any moment (`grader.crew.Crew`)."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._client: Any = None
        self._executor: Any = None

    def __enter__(self) -> Self:
        """Connect. Raises: ClusterError without the extra, with too old a version, without scheduler or worker."""
        client_of = _dask()
        try:
            self._client = client_of(self._address, timeout=_CONNECT_SECONDS, set_as_default=False)
            self._client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
        except (OSError, ValueError, TimeoutError) as error:
            self.__exit__()
            what = (
                "no worker has joined" if self._client else f"no scheduler answers ({type(error).__name__})"
            )
            raise ClusterError(
                f"--cluster {self._address}: {what}; give the address that the scheduler printed, "
                "such as tcp://127.0.0.1:8786, and start workers for it"
            ) from None
        self._client.run(get_ready, on_error="ignore")  # a worker that cannot will say so with its first task
        self._executor = self._client.get_executor(pure=False, retries=_RETRIES)
        return self

    def __exit__(self, *_: object) -> None:
        """Disconnect: what has not begun is forgotten by the cluster, what runs ends by itself and is not asked for."""
        if self._client:
            with contextlib.suppress(Exception):  # a cluster that is gone cannot be left in order
                self._client.close(timeout=STOP_SECONDS)

    def width(self) -> int:
        """Say how many threads the workers have now; one when they are all gone, since others may come."""
        return sum(self._asked(self._client.nthreads).values()) or 1

    def submit(self, task: Task | NotebookTask) -> Future[bytes]:
        """Send one task. Raises: ClusterError when the scheduler is gone."""
        future: Future[bytes] = self._asked(lambda: self._executor.submit(grade_bytes, pickle.dumps(task)))
        return future

    def _asked(self, question: Any) -> Any:
        """Ask the scheduler something."""
        if self._client.status == "running":
            with contextlib.suppress(OSError, RuntimeError):
                return question()
        raise ClusterError(
            f"--cluster {self._address}: the scheduler is gone; what was graded is recorded: "
            "start it again, then go on with --resume"
        )


def get_ready() -> None:
    """Find out on a worker what every grading needs to know: else its first submission pays for it."""
    strongest_rung()
    way_to_mount()


def grade_bytes(task: bytes) -> bytes:
    """Do one task on a worker. A cluster that can be asked for this can be asked for anything: it is trusted."""
    return grade_task(pickle.loads(task))  # noqa: S301 - the grader's own


def _dask() -> Any:
    """Give Dask's client class. Raises: ClusterError."""
    try:
        version = importlib.metadata.version("distributed")
        from distributed import Client  # noqa: PLC0415 - takes a second, and only who asks for it has it
    except ImportError as error:
        raise ClusterError(f"--cluster: Dask is not installed ({error}); {_EXTRA}") from None
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise ClusterError(f"--cluster: Dask {version} is older than {oldest}; {_EXTRA}")
    return Client
