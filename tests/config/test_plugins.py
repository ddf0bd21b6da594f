"""Manifests of plugins, the places of their parts, and copies of folders."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.config.mcp.files import plugin_servers
from tenuto.config.places import find_named
from tenuto.config.plugins.copying import copy_folder
from tenuto.config.plugins.installed import Record, digest_folder, read_added
from tenuto.config.plugins.manifest import Plugin, PluginError, inner_path, plugin_command, read_plugin
from tenuto.config.plugins.marketplace import read_marketplace


def write(folder: Path, **files: object) -> Path:
    """Write files; `__` in a name stands for `/`, what is no text is JSON."""
    for name, content in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def manifest(folder: Path, **values: object) -> Path:
    (folder / ".claude-plugin").mkdir(parents=True, exist_ok=True)
    (folder / ".claude-plugin/plugin.json").write_text(json.dumps({"name": "p", **values}))
    return folder


def install(home: Path, name: str, make) -> Path:
    """Put a plugin where added ones lie, as one that was agreed to."""
    folder = home / "plugins" / name
    folder.mkdir(parents=True)
    make(folder)
    record = {"source": "x", "digest": digest_folder(folder)}
    (home / "plugins.json").write_text(json.dumps({name: record}))
    (home / "plugins.json").chmod(0o600)
    return folder


def names(plugin: Plugin, part: str) -> list[str]:
    return [os.path.relpath(path, plugin.root) for path in getattr(plugin, part)]


@pytest.mark.parametrize("place", [".claude-plugin/plugin.json", ".plugin/plugin.json", "plugin.json"])
def test_j7_the_manifest_of_each_layout_is_read(tmp_path, place):
    write(tmp_path / "p", skills__a__SKILL="x")
    path = tmp_path / "p" / place
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"id": "https://x", "name": "from.it", "version": "2", "license": "MIT"}))
    plugin = read_plugin(tmp_path / "p")
    assert (plugin.name, plugin.version, plugin.license, plugin.manifest) == ("from.it", "2", "MIT", path)


def test_j7_named_places_come_beside_the_usual_ones_and_an_entry_without_strict_names_all(tmp_path):
    folder = manifest(tmp_path / "p", skills="./more", commands=["./one.md"], agents="./gone", hooks="./h.json")
    for name in ("skills", "more", "commands", "hooks"):
        (folder / name).mkdir()
    for name in ("one.md", "h.json", "hooks/hooks.json", ".mcp.json"):
        (folder / name).write_text("{}")
    plugin = read_plugin(folder)
    assert names(plugin, "skills") == ["skills", "more"]
    assert names(plugin, "commands") == ["commands", "one.md"]
    assert names(plugin, "hooks") == ["hooks/hooks.json", "h.json"]
    assert names(plugin, "servers") == [".mcp.json"]
    assert plugin.problems == ("agents: ./gone is not there",)
    manifest(folder, skills=["./more"], strict=False, hooks={"Stop": []}, lspServers={"x": {}}, rules="x")
    plugin = read_plugin(folder)
    assert names(plugin, "skills") == ["more"] and names(plugin, "commands") == ["commands"]
    assert names(plugin, "hooks") == [".claude-plugin/plugin.json"]
    assert plugin.problems == ("language servers are not supported (lspServers)",)


@pytest.mark.parametrize("written", ["../x", "/etc", "a/../../x", "link", "link/x", "./link", "a\0b"])
def test_j7_no_part_lies_outside_of_the_plugin(tmp_path, written):
    folder = manifest(tmp_path / "p", skills=[written], commands=written, hooks=written, mcpServers=[written])
    (tmp_path / "x").mkdir()
    (folder / "link").symlink_to(tmp_path / "x")
    plugin = read_plugin(folder)
    assert (plugin.skills, plugin.commands, plugin.hooks, plugin.servers) == ((), (), (), ())
    assert len(plugin.problems) == 4 and all("leads out of" in problem for problem in plugin.problems)


@given(written=st.text(alphabet="./abl\\ ", max_size=12))
def test_j7_whatever_a_manifest_names_stays_inside(tmp_path_factory, written):
    root = tmp_path_factory.getbasetemp() / "inside"
    (root / "a").mkdir(parents=True, exist_ok=True)
    if not (root / "l").is_symlink():
        (root / "l").symlink_to("/")
    try:
        path = inner_path(root, written)
    except PluginError:
        return
    assert Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


@given(
    values=st.dictionaries(
        st.sampled_from(
            ["name", "version", "skills", "commands", "agents", "hooks", "mcpServers", "strict", "description"]
        ),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=8),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
            max_leaves=6,
        ),
    )
)
def test_j7_no_manifest_does_more_than_be_refused(tmp_path_factory, values):
    root = tmp_path_factory.getbasetemp() / "any"
    (root / ".claude-plugin").mkdir(parents=True, exist_ok=True)
    for name in ("plugin.json", "marketplace.json"):
        (root / ".claude-plugin" / name).write_text(json.dumps({**values, "plugins": [values, values.get("skills")]}))
    try:
        read_plugin(root, "any")
        read_marketplace(root)
    except PluginError:
        pass


def test_j7_servers_get_the_places_of_their_plugin(tmp_path):
    def make(folder: Path) -> None:
        manifest(folder)
        flat = {"one": {"command": "${CLAUDE_PLUGIN_ROOT}/run", "args": ["${PLUGIN_DATA}/x", "${OTHER}"]}}
        (folder / ".mcp.json").write_text(json.dumps(flat))
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"two": {"command": "./bin/two"}, "bad": {}}}))

    root = install(tmp_path, "p", make)
    problems: list[str] = []
    one, two = plugin_servers(tmp_path, problems)
    data = f"{tmp_path}/plugin-data/p"
    assert (one.name, two.name) == ("plugin_p_one", "plugin_p_two")
    assert (one.server.command, one.server.args, one.server.cwd) == (f"{root}/run", (f"{data}/x", "${OTHER}"), "")
    assert one.server.env["CLAUDE_PLUGIN_ROOT"] == str(root) and one.server.env["PLUGIN_DATA"] == data
    assert (two.server.command, two.server.cwd) == (f"{root}/bin/two", str(root))
    assert len(problems) == 1 and "plugin_p_bad" in problems[0]


@pytest.mark.parametrize(
    ("root", "written", "becomes"),
    [
        ("/a/plugins/p", "sh '${CLAUDE_PLUGIN_ROOT}/x'", "sh '/a/plugins/p/x'"),
        ("/a/plugins/p", "${PLUGIN_DATA}/$CLAUDE_PLUGIN_ROOT", "/a/plugin-data/p/$CLAUDE_PLUGIN_ROOT"),
        ("/a b/plugins/p", 'sh "${CLAUDE_PLUGIN_ROOT}/x"', 'sh "${CLAUDE_PLUGIN_ROOT}/x"'),
        ("/a;id/plugins/p", "${CLAUDE_PLUGIN_ROOT}", "${CLAUDE_PLUGIN_ROOT}"),
    ],
)
def test_j7_a_path_that_a_shell_would_take_apart_is_left_to_the_environment(root, written, becomes):
    assert plugin_command(written, Path(root)) == becomes


def test_j7_a_name_without_its_plugin_s_means_the_only_thing_that_has_it():
    def made(*listed: str) -> list[Record]:
        class Thing(Record, frozen=True, kw_only=True):
            name: str = ""

        return [Thing(name=name, source="", digest="") for name in listed]

    def find(name: str, *listed: str) -> str:
        found = find_named(made(*listed), name)
        return found.name if found is not None else ""

    assert find("a", "p:a", "p:b") == "p:a"
    assert find("a", "p:a", "a") == "a"
    assert find("a", "p:a", "q:a") == ""
    assert find("q:a", "p:a", "q:a") == "q:a"
    assert find("b:c", "p:b:c") == find("", "p:") == ""
    assert find("p", "p:a") == ""


@given(content=st.dictionaries(st.text("ab/", min_size=1, max_size=5), st.binary(max_size=8), max_size=4))
def test_j7_a_copy_has_the_same_digest_and_another_content_another(tmp_path_factory, content):
    base = tmp_path_factory.mktemp("copy")
    source = base / "source"
    source.mkdir()
    for name, data in content.items():
        path = source / "/".join(part for part in name.split("/") if part)
        if path.exists() or any(parent.is_file() for parent in path.parents):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    copy_folder(source, base / "target", source)
    assert digest_folder(source) == digest_folder(base / "target")
    (base / "target/new").write_bytes(b"x")
    assert digest_folder(source) != digest_folder(base / "target")


def test_j7_a_copy_is_private_keeps_what_can_be_run_and_has_no_links(tmp_path):
    source = write(tmp_path / "source", run__it="x", text="y")
    (source / "run/it").chmod(0o777)
    (source / "text").chmod(0o666)
    (source / "link").symlink_to("text")
    (source / "folder").symlink_to("run")
    (source / ".git").mkdir()
    copy_folder(source, tmp_path / "target", source)
    target = tmp_path / "target"
    assert (target / "run/it").stat().st_mode & 0o777 == 0o700
    assert (target / "text").stat().st_mode & 0o777 == 0o600
    assert (target / "link").read_text() == "y" and not (target / "link").is_symlink()
    assert (target / "folder/it").read_text() == "x" and not (target / "folder").is_symlink()
    assert not (target / ".git").exists()


def test_j7_a_record_of_a_strange_name_or_a_lost_folder_counts_for_nothing(tmp_path):
    install(tmp_path, "p", manifest)
    record = json.loads((tmp_path / "plugins.json").read_text())["p"]
    (tmp_path / "plugins.json").write_text(json.dumps({"p": record, "../p": record, "lost": record}))
    found = {one.name: one.state for one in read_added(tmp_path).added}
    assert found == {"p": "used", "lost": "broken"}
