"""Plugins are found by their entry points, and none of them can take the tool down."""

from __future__ import annotations

import sys
from textwrap import dedent
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from xlm_plugin import plugins
from xlm_plugin.errors import DoesNotFitError, PluginError
from xlm_plugin.hookspecs import hookimpl
from xlm_plugin.plugins import PluginInfo, PluginManager, get_plugin_manager, use_plugin_manager
from xlm_plugin.testing import FakeBackend, fake_machine, plugin_manager

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from xlm_plugin.backend import Backend
    from xlm_plugin.machine.document import Machine

PLANNER = """
    from xlm_plugin.hookspecs import hookimpl

    @hookimpl
    def xlm_plan_ready(plan): ...
"""


class Install(Protocol):
    def __call__(self, name: str, code: str = PLANNER, *, distribution: str | None = None) -> None: ...


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that installs a distribution with one plugin, which alone is let through."""
    monkeypatch.syspath_prepend(tmp_path)
    names: list[str] = []

    def make(name: str, code: str = PLANNER, *, distribution: str | None = None) -> None:
        distribution = distribution or f"xlm-{name}"
        module = f"module_of_{distribution.replace('-', '_')}"
        (tmp_path / f"{module}.py").write_text(dedent(code), encoding="utf-8")
        metadata = tmp_path / f"{distribution.replace('-', '_')}-2.1.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Name: {distribution}\nVersion: 2.1\n", encoding="utf-8")
        (metadata / "entry_points.txt").write_text(f"[xlm_plugin]\n{name} = {module}\n", encoding="utf-8")
        names.append(name)
        monkeypatch.setenv("XLM_LOAD_PLUGINS", ",".join(names))
        monkeypatch.delitem(sys.modules, module, raising=False)

    return make


def load() -> PluginManager:
    manager = PluginManager()
    manager.load_installed()
    return manager


def test_an_installed_plugin_is_listed_with_its_distribution_and_hooks(install: Install) -> None:
    install("planner")
    assert load().infos() == (PluginInfo("planner", "xlm-planner", "2.1", ("xlm_plan_ready",)),)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import a_module_that_is_not_there", "No module named 'a_module_that_is_not_there'"),
        ("def (", "SyntaxError"),
        ("raise SystemExit('not on this machine')", "SystemExit: not on this machine"),
        ("raise ValueError", "ValueError"),
        (PLANNER.replace("xlm_plan_ready", "xlm_plan_redy"), "unknown hook 'xlm_plan_redy'"),
        (PLANNER.replace("(plan)", "(plans)"), "plans"),
    ],
    ids=["missing module", "syntax", "exit", "no message", "unknown hook", "unknown argument"],
)
def test_a_broken_plugin_is_reported_by_name_and_skipped(
    install: Install, capsys: pytest.CaptureFixture[str], code: str, reason: str
) -> None:
    install("broken", code)
    install("works")
    broken_last = load().infos()
    assert [(info.name, info.problem is None) for info in broken_last] == [("works", True), ("broken", False)]
    assert reason in str(broken_last[1].problem)
    reported = capsys.readouterr().err
    assert reported.startswith("Plugin 'broken' is skipped: ")
    assert reason in reported
    assert reported.count("\n") == 1


def test_a_broken_plugin_leaves_no_hook_behind(install: Install) -> None:
    install("broken", PLANNER + "\n    @hookimpl\n    def xlm_plan_redy(): ...\n")
    manager = load()
    assert not manager.hook.xlm_plan_ready.get_hookimpls()
    manager.check_pending()


def test_the_second_plugin_of_a_name_is_skipped(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install("twin", distribution="one")
    install("twin", distribution="two")
    manager = load()
    assert [info.problem for info in manager.infos()] == [None, "another plugin has the same name"]
    assert "Plugin 'twin' is skipped" in capsys.readouterr().err


def test_no_plugin_is_loaded_where_the_restriction_is_empty(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("planner")
    monkeypatch.setenv("XLM_LOAD_PLUGINS", "")
    assert load().infos() == ()


def test_only_named_plugins_are_loaded(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    install("one")
    install("two")
    monkeypatch.setenv("XLM_LOAD_PLUGINS", " two ,")
    assert [info.name for info in load().infos()] == ["two"]


def test_a_name_that_is_not_installed_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XLM_LOAD_PLUGINS", "elsewhere")
    assert [(info.name, bool(info.problem)) for info in load().infos()] == [("elsewhere", True)]
    assert "Plugin 'elsewhere' is skipped" in capsys.readouterr().err


def test_third_parties_are_asked_before_built_in_plugins(install: Install) -> None:
    describing = """
        from xlm_plugin.hookspecs import hookimpl
        from xlm_plugin.testing import fake_host, fake_machine

        @hookimpl
        def xlm_describe_machine():
            return fake_machine(host=fake_host(threads=THREADS))
    """
    install("zzz", describing.replace("THREADS", "1"), distribution="xlm-plugin")
    install("aaa", describing.replace("THREADS", "2"))
    assert load().hook.xlm_describe_machine().host.threads == 2


class Described:
    """A plugin that answers well."""

    @hookimpl
    def xlm_describe_machine(self) -> Machine:
        return fake_machine()

    @hookimpl
    def xlm_backends(self) -> Iterator[Backend]:
        yield FakeBackend()


class Raising:
    """A plugin that raises whatever it is asked."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    @hookimpl
    def xlm_describe_machine(self) -> Machine:
        raise self.error

    @hookimpl
    def xlm_plan_ready(self) -> None:
        raise self.error

    @hookimpl
    def xlm_backends(self) -> Iterator[Backend]:
        yield FakeBackend()
        raise self.error


def test_an_observer_that_raises_is_reported_and_does_not_stop_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen: list[Any] = []

    class Observer:
        @hookimpl
        def xlm_plan_ready(self, plan: Any) -> None:
            seen.append(plan)

    manager = PluginManager()
    manager.register(Observer())
    manager.register(Raising(OSError("gone")), "raising")
    manager.hook.xlm_plan_ready(plan="a plan")
    assert seen == ["a plan"]
    reported = capsys.readouterr().err
    assert reported == "Plugin 'raising' failed in xlm_plan_ready and is skipped: OSError: gone.\n"


def test_a_collecting_hook_that_raises_midway_gives_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with plugin_manager(Described(), Raising(OSError("gone"))) as manager:
        assert len(manager.backends()) == 1
    assert "OSError: gone" in capsys.readouterr().err


def test_a_hook_that_has_to_answer_names_the_plugin_that_raises() -> None:
    manager = PluginManager()
    manager.register(Described())
    manager.register(Raising(OSError("gone")), "raising")
    with pytest.raises(PluginError, match=r"'raising' failed in xlm_describe_machine: OSError: gone\."):
        manager.hook.xlm_describe_machine()


def test_a_plugin_cannot_exit_from_a_hook(capsys: pytest.CaptureFixture[str]) -> None:
    with plugin_manager(Described(), Raising(SystemExit(7))) as manager:
        assert len(manager.backends()) == 1
        with pytest.raises(PluginError, match="SystemExit: 7"):
            manager.hook.xlm_describe_machine()
    assert "SystemExit: 7" in capsys.readouterr().err


def test_an_error_for_the_user_passes_through_a_hook_that_has_to_answer() -> None:
    with plugin_manager(Raising(DoesNotFitError("too big"))) as manager, pytest.raises(DoesNotFitError):
        manager.hook.xlm_describe_machine()


def test_a_hook_wrapper_sees_the_result() -> None:
    results: list[Machine] = []

    class Wrapper:
        @hookimpl(wrapper=True)
        def xlm_describe_machine(self) -> Generator[None, Machine, Machine]:
            results.append((yield))
            return results[0]

    with plugin_manager(Described(), Wrapper()) as manager:
        assert manager.hook.xlm_describe_machine() is results[0]


def test_a_plugin_that_is_no_distribution_is_listed_by_its_name() -> None:
    manager = PluginManager()
    manager.register(Described(), "described")
    hooks = ("xlm_backends", "xlm_describe_machine")
    assert manager.infos() == (PluginInfo("described", None, None, hooks),)


def test_the_process_has_one_manager_that_loads_what_is_installed(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("planner")
    monkeypatch.setattr(plugins, "_manager", None)
    manager = get_plugin_manager()
    assert [info.name for info in manager.infos()] == ["planner"]
    assert get_plugin_manager() is manager


def test_another_manager_stands_in_while_its_context_lasts() -> None:
    outer, inner = PluginManager(), PluginManager()
    with use_plugin_manager(outer):
        with use_plugin_manager(inner):
            assert get_plugin_manager() is inner
        assert get_plugin_manager() is outer


def test_an_answer_of_another_type_names_the_plugin() -> None:
    class Wrong:
        @hookimpl
        def xlm_plan(self) -> dict[str, str]:
            return {"format": "xlm.plan/1"}

    with plugin_manager() as pm:
        pm.register(Wrong(), "wrong")
        with pytest.raises(
            PluginError, match=r"'wrong' failed in xlm_plan: .* returned a dict, not a Plan\."
        ):
            pm.hook.xlm_plan(model=None, profile=None, context=None, budget=1, objective="e2e", strategies=())
