"""``xlm ollama install``, ``uninstall``, ``status`` and ``doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from xlm_ollama.install import LIBRARY, Installation, state_of
from xlm_ollama.install import uninstall as remove
from xlm_ollama.layout import check_system, find_layout
from xlm_ollama.support import supported_release
from xlm_plugin.cache import cache_root
from xlm_plugin.cli._check_list import print_checks

if TYPE_CHECKING:
    from xlm_llamacpp.engine.releases import Release
    from xlm_ollama.layout import Layout

_prefix = click.option(
    "--prefix",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Ollama's folder with llama-server in it.  [default: where Ollama is]",
)
_dry_run = click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")


@click.command()
@_prefix
@_dry_run
@click.option("--docker", is_flag=True, help="For Ollama in a container: print what to mount.")
def install(prefix: Path | None, dry_run: bool, docker: bool) -> None:
    """Put the device into Ollama, in a folder of its own beside those of the accelerators.

    Nothing of Ollama's is changed. Models run as before until 'xlm ollama enable'.
    """
    from xlm_llamacpp.engine import ensure_device

    check_system()
    if docker:
        _for_docker()
        return
    layout = find_layout(prefix)
    release = supported_release(layout)
    if dry_run:
        _dry_install(layout, release)
        return
    Installation.of(layout, ensure_device(release.version), release).write()
    click.echo(f"The device is in {layout.folder}. Restart Ollama: {_RESTART}.", err=True)
    click.echo("Next: xlm ollama enable MODEL --vram 6GiB. Undo: xlm ollama uninstall.", err=True)


@click.command()
@_prefix
@_dry_run
def uninstall(prefix: Path | None, dry_run: bool) -> None:
    """Take the device out of Ollama. Enabled models stay and run as they did without it."""
    layout = find_layout(prefix)
    if dry_run:
        click.echo(f"remove {layout.folder}")
        return
    left = remove(layout)
    if left:
        click.echo(f"{layout.folder} stays: it holds {', '.join(left)}, not made by xlm.", err=True)
    click.echo(f"The device is out of {layout.root}. Restart Ollama: {_RESTART}.", err=True)


@click.command()
@_prefix
def status(prefix: Path | None) -> int:
    """Show whether the device is in Ollama, and whether it is for this Ollama.

    The exit code is 1 where it is not.
    """
    layout = find_layout(prefix)
    state, fault = state_of(layout)
    click.echo(f"Ollama: {layout.root} (ggml {layout.ggml_version()})")
    click.echo(f"accelerators: {', '.join(layout.accelerators) or 'none'}")
    click.echo(f"xlm: {state}")
    if fault:
        click.echo(f"{fault} Run 'xlm ollama install' again.")
    elif state == "not installed":
        click.echo("Ollama's installer removes it with each upgrade: run 'xlm ollama install' then.")
    return 0 if state == "installed" else 1


@click.command()
@_prefix
def doctor(prefix: Path | None) -> int:
    """Check Ollama, its engine, the device in it, the planner and the server.

    The exit code is 1 where something fails, so that models run without a plan.
    """
    from xlm_ollama.health import all_checks

    checks = all_checks(prefix)
    print_checks(checks)
    return 1 if any(check.status == "fail" for check in checks) else 0


_RESTART = "sudo systemctl restart ollama, or end 'ollama serve' and start it again"


def _for_docker() -> None:
    from xlm_llamacpp.engine import ensure_device
    from xlm_llamacpp.engine.releases import find_release
    from xlm_ollama.docker import mounts, staged_layout

    release = find_release(None)
    layout = staged_layout()
    Installation.of(layout, ensure_device(release.version), release).write()
    for option in mounts(layout):
        click.echo(option)
    click.echo("Give these to 'docker run'. Undo: leave them out.", err=True)


def _dry_install(layout: Layout, release: Release) -> None:
    from xlm_llamacpp.engine import find_engine

    engine = find_engine(release.version)
    if engine is None:
        click.echo(f"build the device for llama.cpp {release.version} in {cache_root()}")
        click.echo(f"write {layout.folder} with it")
        return
    installation = Installation.of(layout, engine.library, release)
    for name, content in installation.files.items():
        click.echo(f"write {installation.folder / name} ({len(content)} bytes)")
        if name != LIBRARY:
            for line in content.decode().splitlines():
                click.echo(f"  {line}")
