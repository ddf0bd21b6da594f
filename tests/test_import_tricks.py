"""Modules that are left out, replaced, or wait until something of them is used."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from tenuto.import_tricks import import_without, late_modules, replace_module


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A package whose `heavy` module two others import, by name and as a whole."""
    folder = tmp_path / "some_library"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "heavy.py").write_text("VALUE = 7\ndef double(number):\n    return 2 * number\n")
    (folder / "user.py").write_text("from some_library.heavy import double\ndef four(): return double(2)\n")
    (folder / "able.py").write_text("try:\n    import some_library.heavy\nexcept ImportError:\n    heavy = None\n")
    (folder / "taker.py").write_text("import some_library.heavy as heavy\nnow = heavy.VALUE\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.startswith("some_library")]:
        del sys.modules[name]


@pytest.mark.usefixtures("library")
def test_a_module_waits_for_its_first_use_and_is_itself_for_everybody_else():
    with late_modules({"some_library.heavy": ("double",)}):
        user = import_module("some_library.user")
    assert "some_library.heavy" not in sys.modules
    assert sys.modules["some_library"].heavy.VALUE == 7  # as an import would have put it there
    heavy = sys.modules["some_library.heavy"]
    assert type(heavy) is ModuleType
    assert user.four() == 4
    assert import_module("some_library.heavy") is heavy is sys.modules["some_library"].heavy


@pytest.mark.usefixtures("library")
def test_one_that_is_needed_at_once_is_imported_at_once():
    with late_modules({"some_library.heavy": ()}):
        assert import_module("some_library.taker").now == 7
    assert type(sys.modules["some_library.heavy"]) is ModuleType


@pytest.mark.usefixtures("library")
def test_what_a_module_can_do_without_is_left_out_for_it_alone():
    assert import_without("some_library.able", "some_library.heavy").heavy is None
    assert import_module("some_library.heavy").VALUE == 7
    assert import_without("some_library.user", "some_library.heavy").four() == 4


@pytest.mark.usefixtures("library")
def test_a_module_that_is_replaced_has_empty_classes():
    replace_module("some_library.heavy", ("Heavy",))
    assert type(import_module("some_library.heavy").Heavy) is type


def test_what_is_there_already_stays():
    here = sys.modules[__name__]
    replace_module(__name__, ("Here",))
    assert sys.modules[__name__] is here
    with late_modules({__name__: ("f",)}):
        assert sys.modules[__name__] is here


@pytest.mark.parametrize(
    ("screen", "late", "use"),
    [
        (
            "import tenuto.tui.full.app",
            "platformdirs rich.table tempfile shutil bz2 hashlib textual.system_commands",
            "import textual.app as app, platformdirs; from rich.table import Table\n"
            "assert app.user_downloads_path() == platformdirs.user_downloads_path()\n"
            "import textual.design as design; assert type(design.Table()) is Table",
        ),
        (
            "from tenuto.model.http.proxied import load_httpx; load_httpx()",
            "click rich",
            "assert load_httpx().AsyncClient",
        ),
    ],
)
def test_what_is_left_for_later(screen: str, late: str, use: str):
    code = f"import sys\n{screen}\nfound = set({late.split()}) & set(sys.modules)\n"
    code += f"assert not found, found\n{use}"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("library")
def test_nothing_is_one_of_a_class_whose_module_is_not_there_yet(tmp_path: Path):
    (tmp_path / "some_library" / "heavy.py").write_text("class Kind: pass\nVALUE = 7\n")
    (tmp_path / "some_library" / "asker.py").write_text(
        "import some_library.heavy as heavy\ndef asks(value): return isinstance(value, heavy.Kind)\n"
    )
    with late_modules({"some_library.heavy": ()}, kinds={"some_library.heavy": ("Kind",)}):
        asker = import_module("some_library.asker")
    assert not asker.asks(7)
    assert "some_library.heavy" not in sys.modules
    assert asker.asks(import_module("some_library.heavy").Kind())
    assert asker.heavy.VALUE == 7


def test_asyncio_has_tls_when_it_is_asked_for():
    code = (
        "import sys, tenuto.frontend, asyncio\n"
        "assert 'ssl' not in sys.modules\n"
        "async def main():\n"
        "    import socket\n"
        "    one, other = socket.socketpair()\n"
        "    await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=one)\n"
        "    assert 'ssl' not in sys.modules\n"
        "    import ssl\n"
        "    context = ssl.create_default_context()\n"
        "    other.close()\n"
        "    try: await asyncio.open_connection('127.0.0.1', 1, ssl=context)\n"
        "    except OSError: pass\n"
        "    assert asyncio.sslproto.SSLProtocol and isinstance(asyncio.base_events.ssl.SSLSocket, type)\n"
        "    assert asyncio.base_events.ssl.SSLSocket is ssl.SSLSocket\n"
        "asyncio.run(main())\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
