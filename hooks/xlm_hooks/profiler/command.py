"""``xlm profile``: measure this machine, and look after what was measured."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from xlm_hooks.profiler import files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from xlm_hooks.profiler.run import Session
    from xlm_plugin.machine.document import Machine
    from xlm_plugin.machine.profile import MeasurementRequest
    from xlm_plugin.machine.profile_document import ProfileDocument
    from xlm_plugin.plugins import PluginManager

QUICK_SECONDS = 60
FULL_SECONDS = 300

DEVICE = click.option("--device", metavar="NAME", help="A device of this machine, or emulated.")


@click.group("profile", invoke_without_command=True)
@click.option("--full", is_flag=True, help="More shapes, types and threads: 5 minutes, not 1.")
@click.option("--for", "model", metavar="MODEL", help="Measure just the shapes that MODEL needs.")
@click.option("--again", is_flag=True, help="Measure again what was measured before.")
@DEVICE
@click.pass_context
def command(ctx: click.Context, full: bool, model: str | None, again: bool, device: str | None) -> int:
    """Measure how fast this machine computes and copies, so that plans are made from that.

    What is measured is kept even where you interrupt; the next run goes on from there.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    from xlm_plugin.cli._output import err, out
    from xlm_plugin.machine.store import profile_path

    target = Target.of(device, again=again)
    wanted = _requests(target.machine, full=full, model=model)
    known = {each.request for each in target.document.measurements}
    requests = wanted if again else [request for request in wanted if request not in known]
    if not requests:
        out().print("Everything is measured already; --again measures it again.")
        return 0
    session = measure(target, requests, FULL_SECONDS if full else QUICK_SECONDS)
    document = session.document
    emulated = " (emulated)" if document.identity.emulated else ""
    path = profile_path(document.identity)
    out().print(
        f"{document.identity.device}{emulated} on {document.identity.cpu}: "
        f"{len(document.measurements)} rows in {path}, {path.stat().st_size / 1000:.0f} kB"
    )
    if session.left:
        err().print(f"{session.left} requests are left; run it again to go on.")
    if session.unanswered:
        err().print(
            f"{len(session.unanswered)} requests have no answer here: the device or engine lacks them."
        )
    return 0 if document.measurements else 1


@dataclass(frozen=True, slots=True)
class Target:
    """What is measured: plugins that answer, the machine, and what is known of it."""

    manager: PluginManager
    machine: Machine
    document: ProfileDocument

    @classmethod
    def of(cls, device_name: str | None, *, empty: bool = False, again: bool = False) -> Target:
        """Return this machine with the device of that name. Raises XlmError where it cannot be had.

        ``empty`` leaves out what is known, and ``again`` a stored profile that cannot be used.
        """
        from dataclasses import replace

        from xlm_plugin.errors import ProfileError
        from xlm_plugin.machine.identity import read_identity
        from xlm_plugin.machine.profile_document import ProfileDocument
        from xlm_plugin.machine.store import load
        from xlm_plugin.plan.target import choose_device, describe_machine
        from xlm_plugin.plugins import get_plugin_manager

        manager = get_plugin_manager()
        machine = describe_machine(manager)
        machine = replace(machine, device=choose_device(manager, machine, device_name))
        identity = read_identity(machine)
        try:
            known = None if empty else load(identity)
        except ProfileError:
            if not again:
                raise
            known = None
        # Rows of before a change would pass for rows of after it.
        if known is None or identity.changes_since(known.identity):
            known = ProfileDocument(identity, ())
        return cls(manager, machine, known)


def measure(
    target: Target,
    requests: list[MeasurementRequest],
    limit_seconds: float,
    save: Callable[[ProfileDocument], object] | None = None,
) -> Session:
    """Measure ``requests`` with a bar on stderr and return the finished session."""
    from xlm_hooks.profiler.run import Session
    from xlm_plugin.machine import store

    for backend in target.manager.backends():
        backend.prepare()
    with _bar(len(requests)) as advance:
        session = Session(
            target.manager, target.machine, target.document, requests, save or store.save, advance
        )
        session.run(limit_seconds)
    return session


def _requests(machine: Machine, *, full: bool, model: str | None) -> list[MeasurementRequest]:
    from xlm_hooks.profiler.requests import Requests

    requests = Requests(machine, full=full)
    if model is None:
        return requests.all()
    from xlm_plugin.model import read_model
    from xlm_plugin.model.resolve import resolve_model

    return requests.for_model(read_model(resolve_model(model)))


@contextmanager
def _bar(total: int) -> Iterator[Callable[[int], object]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    from xlm_plugin.cli._output import err

    with Progress(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=err()) as progress:
        task = progress.add_task("measuring", total=total)
        yield lambda done: progress.update(task, completed=done)


for _each in (files.show, files.export, files.import_rows, files.diff, files.merge):
    command.add_command(_each)
