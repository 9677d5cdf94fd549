"""The plugin manager. Built-in plugins come in by the same entry points as third parties'."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pluggy

from xlm_plugin import hookspecs
from xlm_plugin.errors import PluginError, XlmError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.metadata import EntryPoint

    from xlm_plugin.backend import Backend

GROUP = "xlm_plugin"
DISTRIBUTION = "xlm-plugin"

# What hooks whose first result wins have to answer with, by the name of the class, or None.
_ANSWERS = {"xlm_plan": "Plan", "xlm_describe_machine": "Machine", "xlm_switch_cost": "SwitchCost"}


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """A plugin as listed; ``problem`` says why it was skipped and is None where it works."""

    name: str
    distribution: str | None
    version: str | None
    hooks: tuple[str, ...] = ()
    problem: str | None = None


class PluginManager(pluggy.PluginManager):
    """A pluggy manager in which no plugin can take the tool down.

    A plugin that cannot be loaded is reported on stderr by name and skipped. In a loaded one, a hook
    that collects or observes and raises is reported and skipped for that call. A hook whose first
    result wins has to answer: its XlmError passes through, anything else it raises becomes a
    PluginError that names the plugin.
    """

    def __init__(self) -> None:
        super().__init__(GROUP)
        self.add_hookspecs(hookspecs)
        self._entries: dict[str, EntryPoint] = {}
        self._broken: list[PluginInfo] = []

    def register(self, plugin: object, name: str | None = None) -> str | None:
        """Register ``plugin`` and return its name. Raises ValueError or PluginValidationError."""
        registered = super().register(plugin, name)
        for caller in self.get_hookcallers(plugin) or ():
            for hook in caller.get_hookimpls():
                if hook.plugin is plugin and caller.spec and not (hook.wrapper or hook.hookwrapper):
                    call: Callable[..., Any] = _call_optional
                    if caller.spec.opts["firstresult"]:
                        call = partial(_call_required, _ANSWERS.get(caller.name, "object"))
                    where = f"Plugin '{hook.plugin_name}' failed in {caller.name}"
                    hook.function = partial(call, hook.function, where)  # type: ignore[misc]
        return registered

    def get_canonical_name(self, plugin: object) -> str:
        """Return the name of a plugin that is registered without one."""
        name: str | None = getattr(plugin, "__name__", None)
        return name or f"{type(plugin).__name__}@{id(plugin):x}"

    def load_installed(self) -> None:
        """Load the plugins of all installed distributions that ``XLM_LOAD_PLUGINS`` lets through.

        Built-in plugins come first, so that pluggy asks third parties' before them.
        """
        from importlib.metadata import entry_points

        entries = sorted(entry_points(group=GROUP), key=lambda entry: (not _is_built_in(entry), entry.name))
        if (restriction := os.environ.get("XLM_LOAD_PLUGINS")) is not None:
            names = {name.strip() for name in restriction.split(",")} - {""}
            for name in sorted(names - {entry.name for entry in entries}):
                problem = "XLM_LOAD_PLUGINS names it, but it is not installed"
                self._skip(PluginInfo(name, None, None, problem=problem))
            entries = [entry for entry in entries if entry.name in names]
        for entry in entries:
            self._load(entry)

    def infos(self) -> tuple[PluginInfo, ...]:
        """Return the plugins that are loaded, in order, and then those that were skipped."""
        loaded = [self._info(name, plugin) for name, plugin in self.list_name_plugin() if plugin]
        return (*loaded, *self._broken)

    def backends(self) -> tuple[Backend, ...]:
        """Return the engine adapters of all plugins; third parties' come first."""
        return tuple(backend for backends in self.hook.xlm_backends() for backend in backends)

    def _load(self, entry: EntryPoint) -> None:
        plugin = None
        try:
            if self.has_plugin(entry.name):
                raise PluginError("another plugin has the same name")
            plugin = entry.load()
            self.register(plugin, entry.name)
            self.check_pending()
        # Importing a plugin may raise anything, and even exit.
        except (Exception, SystemExit) as error:
            if plugin is not None and self.get_plugin(entry.name) is plugin:
                self.unregister(plugin)
            self._skip(_described(entry, problem=_reason(error)))
        else:
            self._entries[entry.name] = entry

    def _skip(self, info: PluginInfo) -> None:
        self._broken.append(info)
        _report(f"Plugin '{info.name}' is skipped: {info.problem}.")

    def _info(self, name: str, plugin: object) -> PluginInfo:
        hooks = tuple(sorted(caller.name for caller in self.get_hookcallers(plugin) or ()))
        entry = self._entries.get(name)
        return _described(entry, hooks) if entry else PluginInfo(name, None, None, hooks)


def _described(entry: EntryPoint, hooks: tuple[str, ...] = (), problem: str | None = None) -> PluginInfo:
    name, version = (getattr(entry.dist, field, None) for field in ("name", "version"))
    return PluginInfo(entry.name, name, version, hooks, problem)


def _is_built_in(entry: EntryPoint) -> bool:
    return getattr(entry.dist, "name", None) == DISTRIBUTION


def _call_optional(function: Callable[..., Any], where: str, *arguments: object) -> Any:
    try:
        result = function(*arguments)
        # Generators run here, where what they raise can be told from the caller's errors.
        return result if result is None else tuple(result)
    # A plugin may even exit.
    except (Exception, SystemExit) as error:
        _report(f"{where} and is skipped: {_reason(error)}.")
        return None


def _call_required(answer: str, function: Callable[..., Any], where: str, *arguments: object) -> Any:
    try:
        result = function(*arguments)
        if result is not None and answer not in [each.__name__ for each in type(result).__mro__]:
            raise TypeError(
                f"it returned {_with_article(type(result).__name__)}, not {_with_article(answer)}"
            )
        return result
    except XlmError:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(f"{where}: {_reason(error)}.", "Update or remove that plugin.") from error


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiouAEIOU' else 'a'} {noun}"


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    if isinstance(error, XlmError | pluggy.PluginValidationError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _report(message: str) -> None:
    print(message, file=sys.stderr)


_manager: PluginManager | None = None


def get_plugin_manager() -> PluginManager:
    """Return the manager of this process; the first call loads the installed plugins."""
    global _manager
    if _manager is None:
        _manager = PluginManager()
        _manager.load_installed()
    return _manager


@contextmanager
def use_plugin_manager(manager: PluginManager) -> Iterator[PluginManager]:
    """Make ``manager`` the one of this process while the context lasts."""
    global _manager
    previous, _manager = _manager, manager
    try:
        yield manager
    finally:
        _manager = previous
