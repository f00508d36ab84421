"""The crash explorer: choose a store, what a crash keeps and what is synced; see what every crash leaves, and what it breaks.

A click begins a process or asks it to end. What stands here afterwards was read from the files that the process wrote.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import ipywidgets
import traitlets

from labkit import crash_actions, views
from labkit.crash_actions import MODELS, MOST_EVENTS, MOST_STATES, CrashLabError, Settings, Switches
from labkit.watch import Watch
from labkit.widgets import parts
from labkit.widgets.crash_timeline import CrashPart, CrashTimeline
from labkit.widgets.tasks import Tasks
from labkit.words import t

if TYPE_CHECKING:
    from labkit.crash_actions import Counterexample, Explored
    from labkit.owned_child import Ended, OwnedChild

GROUPS = (
    ("lesson-22", ("naive", "starter", "lesson")),
    ("durable-log", ("durable-os", "durable-fsync", "durable-group")),
    ("lesson-04", ("spine-starter", "spine", "spine-resumed", "spine-closed")),
)
"""The stores, as the list groups them."""
GRACE_SECONDS = 3.0
"""How long an exploration may take to end by itself once its widget is closed."""
_EXACT = 10**12
"""A larger number of combinations is shown by its size."""


class Meter(CrashPart):
    """How far an exploration is."""

    _esm = parts.script("crash_meter.js")


class Findings(CrashPart):
    """The counterexamples of one exploration; ``chosen`` is the id of the one to open."""

    _esm = parts.script("crash_findings.js")
    chosen = traitlets.Unicode().tag(sync=True)


class CrashExplorer(ipywidgets.VBox):
    """Explores one store at a time. ``start`` has an awaitable form, so that a notebook runs without a browser, too."""

    _watch: Watch | None = None

    def __init__(self, settings: Settings) -> None:
        self._child: OwnedChild | None = None
        self._running: Settings | None = None
        self._opened: dict[str, Counterexample | None] = {}
        self._tasks = Tasks(self._failed)
        self.status = parts.Status(text=t("crash-lab.ready"))
        self.meter = Meter(words={"progress": t("crash-lab.progress")})
        self.findings = Findings(words={"title": t("crash-lab.found")})
        self.timeline = CrashTimeline()
        super().__init__(self._lay_out(settings))
        self.add_class("lab-room")
        for control in (self.store, self.model, self.events, self.limit, *self.switches.values()):
            control.observe(self._chose, "value")
        self.findings.observe(lambda _change: self._open(), "chosen")
        self._show_running(None)
        try:
            self._watch = Watch(crash_actions.folder(), self.look)
        except CrashLabError as error:
            self._failed(t("crash-lab.title"), error)
        self.look()

    # --- actions ---

    @property
    def settings(self) -> Settings:
        """What is chosen."""
        switches = Switches(**{name: toggle.value for name, toggle in self.switches.items()})
        return Settings(self.store.value, self.model.value, self.events.value, self.limit.value, switches)

    def start(self) -> asyncio.Task[None] | None:
        """Explore what is chosen; None, and a sentence, while something is being explored already."""
        if self._running:
            self.status.text = t("crash-lab.busy", what=_named(self._running))
            return None
        settings = self.settings
        self._show_running(settings)
        return self._tasks.start(lambda: self._explore(settings), t("crash-lab.start"))

    def stop(self) -> None:
        """Ask the exploration to end with what it has; asked again, or where asking fails, end it at once."""
        if self._running is None:
            return
        try:
            is_asked = crash_actions.is_asked_to_end(self._running)
            crash_actions.ask_to_end(self._running)
        except (CrashLabError, OSError):
            is_asked = True
        if is_asked and self._child:
            self._child.stop()
        else:
            self.status.text = t("crash-lab.stopping")

    async def settled(self) -> None:
        """Wait until nothing is being explored, and show what is on disk then."""
        await self._tasks.settled()
        self.look()

    def close(self) -> None:
        """Have what is running end, stop watching, then close as any widget."""
        if self._child:
            # Asked, it clears up behind it; if it does not listen, it is ended.
            asyncio.get_running_loop().call_later(GRACE_SECONDS, self._child.stop)
            self.stop()
        self._tasks.cancel()
        if self._watch:
            self._watch.close()
        super().close()

    # --- how a click becomes a file ---

    async def _explore(self, settings: Settings) -> None:
        self.status.text = t("crash-lab.running", what=_named(settings))
        try:
            self._child = crash_actions.begin(settings, lambda: None)
            ended = await self._child.ended()
        finally:
            self._child = None
            self._show_running(None)
        self.look()
        self.status.text = _how_it_ended(settings, ended, crash_actions.explored(settings))

    def _failed(self, what: str, error: BaseException) -> None:
        self.status.text = t("room.failed", what=what, error=parts.in_one_line(error))

    # --- from the disk to the screen ---

    def look(self) -> None:
        """Read how far the exploration of what is chosen is, and what it found, and show that."""
        settings = self.settings
        explored = crash_actions.explored(settings)
        is_running = settings == self._running
        self.meter.view = _meter(settings, explored, is_running=is_running)
        found = {name: self._counterexample(name) for name in explored.found} if explored else {}
        items = [_item(one) for one in found.values() if one]
        self.findings.view = {"items": items, "sentence": "" if items else t("crash-lab.none")}
        if self.findings.chosen not in found:
            self.findings.chosen = ""

    def _chose(self, _change: object) -> None:
        self.findings.chosen = ""
        self.look()

    def _counterexample(self, name: str) -> Counterexample | None:
        """Read a counterexample once: an id stands for its content."""
        if name not in self._opened:
            try:
                self._opened[name] = crash_actions.open_counterexample(name)
            except CrashLabError as error:
                self._failed(name, error)
                return None
        return self._opened[name]

    def _open(self) -> None:
        found = self._counterexample(self.findings.chosen) if self.findings.chosen else None
        if found is None:
            self.timeline.show(None)
        else:
            self.timeline.show(views.timeline_of(found), t("crash-lab.replay", id=found.id))

    # --- controls ---

    def _lay_out(self, chosen: Settings) -> tuple[ipywidgets.Widget, ...]:
        groups = [
            [t(f"crash-lab.{name}"), [[store, t(f"crash-lab.store-{store}")] for store in stores]]
            for name, stores in GROUPS
        ]
        models = [[model, t(f"crash-lab.model-{model}")] for model in MODELS]
        self.store = parts.Select(label=t("crash-lab.store"), groups=groups, value=chosen.store)
        self.model = parts.Choice(label=t("crash-lab.model"), options=models, value=chosen.model)
        self.events = parts.Number(label=t("crash-lab.events"), low=1, high=MOST_EVENTS, value=chosen.events)
        self.limit = parts.Number(label=t("crash-lab.limit"), low=1, high=MOST_STATES, value=chosen.limit)
        self.switches = {
            name: parts.Toggle(label=t(f"crash-lab.{name.replace('_', '-')}"), value=on)
            for name, on in asdict(chosen.switches).items()
        }
        self.start_button = parts.button(t("crash-lab.start"), self.start)
        self.stop_button = parts.button(t("crash-lab.stop"), self.stop)
        return (
            parts.group(
                t("crash-lab.group-what"), parts.row(self.store, self.events, self.limit), self.model
            ),
            parts.group(t("crash-lab.group-synced"), parts.row(*self.switches.values())),
            parts.row(self.start_button, self.stop_button),
            self.status,
            self.meter,
            self.findings,
            self.timeline,
        )

    def _show_running(self, settings: Settings | None) -> None:
        self._running = settings
        self.start_button.disabled = settings is not None
        self.stop_button.disabled = settings is None


def _named(settings: Settings) -> str:
    off = [
        t(f"crash-lab.no-{name.replace('_', '-')}")
        for name, on in asdict(settings.switches).items()
        if not on
    ]
    store = t(f"crash-lab.store-{settings.store}")
    model = t(f"crash-lab.model-{settings.model}")
    return " · ".join((store, model, t("crash-lab.n-events", n=settings.events), *off))


def _how_it_ended(settings: Settings, ended: Ended, explored: Explored | None) -> str:
    what = _named(settings)
    if ended.exit_code:
        return t("room.failed", what=what, error=next((one.text for one in reversed(ended.lines)), ""))
    if ended.signal or explored is None or not explored.ended:
        return t("crash-lab.killed", what=what)
    return t("crash-lab.ended", what=what, n=explored.explored, kinds=explored.kinds)


def _meter(settings: Settings, explored: Explored | None, *, is_running: bool) -> dict[str, Any]:
    """Return how far an exploration is, as the plain values that ``crash_meter.js`` draws."""
    now = explored or crash_actions.Explored()
    tried = t("crash-lab.of", n=now.tried, possible=_size(now.possible)) if now.possible else "–"
    worth = "bad" if now.kinds else "good" if now.ended else "quiet"
    return {
        "caption": _named(settings),
        "share": _share(now, settings.limit, is_running=is_running),
        "figures": [
            ["explored", t("crash-lab.explored"), f"{now.explored:,}", "quiet"],
            ["tried", t("crash-lab.tried"), tried, "quiet"],
            ["broken", t("crash-lab.kinds"), f"{now.kinds:,}", worth],
        ],
        "note": _note(now, is_there=explored is not None, is_running=is_running),
    }


def _share(now: Explored, limit: int, *, is_running: bool) -> float | None:
    """Return how much is done: of all there is, or of what may be tried; None while that cannot be told."""
    if now.ended or not is_running:
        return float(now.ended)
    return min(1.0, max(now.tried / now.possible, now.explored / limit)) if now.possible else None


def _note(now: Explored, *, is_there: bool, is_running: bool) -> str:
    """Say what the figures mean."""
    if not is_there:
        return t("crash-lab.not-yet")
    if not now.ended:
        return t("crash-lab.under-way") if is_running else t("crash-lab.unfinished")
    unseen = "; ".join(t(f"crash-unseen.{what}", where=where) for what, where in now.unseen)
    said = [t(f"crash-lab.verdict-{_verdict(now)}", states=now.states, unseen=unseen)]
    if not now.complete:
        said.append(t("crash-lab.sampled"))
    said.append(t("crash-lab.took", seconds=f"{now.seconds:.1f}"))
    return " ".join(said)


def _verdict(now: Explored) -> str:
    """Tell apart what a verdict leaves open: a loss that was never promised away, an exploration that was ended."""
    if now.verdict == "kept" and now.kinds:
        return "loss"
    return now.stopped if now.verdict == "not-seen" and now.stopped else now.verdict


def _size(number: int) -> str:
    """Write a number so that a person can read it: 10²³ choices are many, whichever they are."""
    if number < _EXACT:
        return f"{number:,}"
    digits = str(len(str(number)) - 1).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"≈ {str(number)[0]}.{str(number)[1]} × 10{digits}"


def _item(found: Counterexample) -> dict[str, Any]:
    after, deviations = found.state.after, len(found.state.choices)
    text = t("crash-lab.found-at", after=after, steps=len(found.trace.steps), n=deviations)
    return {"id": found.id, "broken": list(found.broken), "text": text}
