"""What becomes of a profile: shown, exported, imported, compared and merged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from xlm_plugin.machine.identity import MachineIdentity
    from xlm_plugin.machine.profile_document import ProfileDocument

_FILE = click.Path(dir_okay=False, path_type=Path)
_DEVICE = click.option("--device", metavar="NAME", help="A device of this machine, or emulated.")


@click.command("show")
@_DEVICE
@click.option("--json", "as_json", is_flag=True, help="Print the document.")
def show(device: str | None, as_json: bool) -> None:
    """Show what was measured on this machine, and what has changed since."""
    from xlm_hooks.profiler.view import print_profile
    from xlm_plugin.cli._output import out

    identity, document = _stored(device)
    if as_json:
        click.echo(document.to_json(), nl=False)
        return
    print_profile(out(), document, identity.changes_since(document.identity))


@click.command("export")
@click.argument("file", type=_FILE)
@_DEVICE
def export(file: Path, device: str | None) -> None:
    """Write this machine's profile to FILE."""
    _stored(device)[1].write(file)


@click.command("import")
@click.argument("file", type=_FILE)
@_DEVICE
def import_rows(file: Path, device: str | None) -> None:
    """Add the rows of FILE to this machine's profile.

    FILE is a profile of this machine, or what test-backend-ops perf printed on it.
    """
    from xlm_hooks.profiler.perf_output import is_perf_output, read_perf_output
    from xlm_plugin.cli._output import out
    from xlm_plugin.errors import ProfileError
    from xlm_plugin.machine import store
    from xlm_plugin.machine.profile_document import ProfileDocument
    from xlm_plugin.text_files import read_text

    identity = _identity(device)
    text = read_text(file, "profile", ProfileError)
    known = store.load(identity) or ProfileDocument(identity, ())
    if is_perf_output(text):
        rows = tuple(read_perf_output(text, identity.threads))
    else:
        document = ProfileDocument.from_json(text)
        store.check_same_machine(document, identity)
        rows = document.measurements
        known = known if known.measurements else ProfileDocument(document.identity, ())
    if not rows:
        raise ProfileError(f"{file} holds no measurement that xlm knows.")
    path = store.save(known.merged(rows))
    out().print(f"{len(rows)} rows are in {path}.")


@click.command("diff")
@click.argument("first", type=_FILE)
@click.argument("second", type=_FILE)
def diff(first: Path, second: Path) -> None:
    """Compare two profiles: what differs in the machines, and in the speeds of equal rows."""
    from xlm_hooks.profiler.view import print_difference
    from xlm_plugin.cli._output import out
    from xlm_plugin.machine.profile_document import ProfileDocument

    print_difference(out(), ProfileDocument.read(first), ProfileDocument.read(second))


@click.command("merge")
@click.argument("files", nargs=-1, required=True, type=_FILE)
@click.option("-o", "--output", type=_FILE, required=True, metavar="FILE", help="Where to write the profile.")
def merge(files: tuple[Path, ...], output: Path) -> None:
    """Merge profiles of one machine; of equal rows the one of the last file counts."""
    from xlm_plugin.machine.profile_document import ProfileDocument
    from xlm_plugin.machine.store import check_same_machine

    documents = [ProfileDocument.read(file) for file in files]
    merged = documents[0]
    for document in documents[1:]:
        check_same_machine(document, merged.identity)
        merged = ProfileDocument(document.identity, merged.merged(document.measurements).measurements)
    merged.write(output)


def _identity(device_name: str | None) -> MachineIdentity:
    from dataclasses import replace

    from xlm_plugin.machine.identity import read_identity
    from xlm_plugin.plan.target import choose_device, describe_machine
    from xlm_plugin.plugins import get_plugin_manager

    manager = get_plugin_manager()
    machine = describe_machine(manager)
    return read_identity(replace(machine, device=choose_device(manager, machine, device_name)))


def _stored(device: str | None) -> tuple[MachineIdentity, ProfileDocument]:
    from xlm_plugin.errors import ProfileError
    from xlm_plugin.machine.store import load

    identity = _identity(device)
    document = load(identity)
    if document is None:
        raise ProfileError(f"{identity.device} was not measured here.", "Measure it with 'xlm profile'.")
    return identity, document
