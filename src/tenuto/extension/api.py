"""What an extension's `setup(tenuto)` is given: all that an extension can do. The docstrings are the manual."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, get_args, overload

from tenuto.extension.registered import (
    TOOL_TIMEOUT,
    AskError,
    Function,
    Model,
    OwnCommand,
    OwnProvider,
    Registered,
    Wire,
    check_function,
    check_name,
    make_tool,
)
from tenuto.protocol.entry import Level
from tenuto.protocol.event import AnyEvent, Event
from tenuto.protocol.hooks import (
    HOOKS,
    BeforeCompactAnswer,
    BeforeTreeAnswer,
    HookName,
    SessionBeforeCompact,
    SessionBeforeTree,
    SessionCompact,
    SessionCompactFailed,
    SessionTree,
)
from tenuto.protocol.model import ModelFacts
from tenuto.text.matching import did_you_mean

E = TypeVar("E")
A = TypeVar("A")
Given: TypeAlias = A | dict[str, Any] | None
Asked: TypeAlias = Callable[[E], Given[A] | Awaitable[Given[A]]]
"""A handler that may answer; plain or `async`."""
Told: TypeAlias = Callable[[E], object]
"""A handler whose answer means nothing; plain or `async`."""
Handler: TypeAlias = Callable[[Any], object]
H = TypeVar("H", bound=Handler)
F = TypeVar("F", bound=Function)
AnyEventType = TypeVar("AnyEventType", bound=Event)
EVENTS: dict[str, type[Event]] = {str(kind.__struct_config__.tag): kind for kind in get_args(AnyEvent)}
"""What can be subscribed to, by the name of each: everything that a front-end is told."""


def _no_answer(_prompt: str, _system: str, _max_tokens: int) -> Future[str]:
    raise AskError("there is no session")


@dataclass(frozen=True, kw_only=True)
class Outside:
    """What an extension's calls reach in the program; each can be called from any thread."""

    notify: Callable[[str, Level], None] = lambda _text, _level: None
    request_compaction: Callable[[str], None] = lambda _focus: None
    ask_model: Callable[[str, str, int], Future[str]] = _no_answer
    add_entry: Callable[[str, bool], None] = lambda _text, _keep: None
    show_status: Callable[[str | None], None] = lambda _text: None
    cwd: Callable[[], Path] = Path.cwd


class ExtensionApi:
    """One extension's way into Tenuto. `name` is what it is called in settings and messages.

    `tool`, `command`, `provider`, `renderer`, `strategy` and `on` register, in `setup`. Everything else may be called
    later and from any thread.
    """

    def __init__(self, name: str, outside: Outside | None = None) -> None:
        self.name = name
        self.registered = Registered()
        self._outside = outside or Outside()
        self._asking = 0
        self._is_open = True
        self._handlers: dict[HookName, list[Handler]] = {hook: [] for hook in HOOKS}

    # --- registering ---

    @overload
    def tool(self, function: F) -> F: ...
    @overload
    def tool(
        self, *, name: str = "", description: str = "", read_only: bool = False, timeout: float = TOOL_TIMEOUT
    ) -> Callable[[F], F]: ...

    def tool(
        self,
        function: F | None = None,
        *,
        name: str = "",
        description: str = "",
        read_only: bool = False,
        timeout: float = TOOL_TIMEOUT,
    ) -> F | Callable[[F], F]:
        """Give the model a tool: a function, plain or `async`. Its type hints are the schema, its docstring the text.

        `Annotated[int, "how many"]` describes a parameter; one annotated with `ToolCall` is given the call. It returns
        a text, JSON values, a `Result`, or nothing. What it raises is told to the model as the call's failure. Calls
        ask the user as every tool's do; a `read_only` one does not. `timeout` is seconds.
        """

        def add(given: F) -> F:
            check_function("tool", given)
            own = check_name("tool", name or getattr(given, "__name__", ""), self.registered.tools)
            made = make_tool(given, own, description, read_only=read_only, timeout=timeout)
            self._open().tools[own] = made
            return given

        return add if function is None else add(function)

    def renderer(self, tool: str) -> Callable[[F], F]:
        """Draw the results of a tool of your own: `function(arguments, result)` returns the rows, without I/O.

        A row is a text, or a list of (text, style name): text, dim, accent, success, warning, error, path, code. It is
        called once, when the tool has run; the rows are kept in the log, so that a resumed session has them too.
        Where it fails the plain result is shown.
        """
        return self._decorator(lambda function: self._add_renderer(tool, function))

    def command(
        self,
        name: str,
        *,
        description: str = "",
        argument_hint: str = "",
        complete: Function | None = None,
    ) -> Callable[[F], F]:
        """Add a slash command: `function(argument)`, plain or `async`, is called for `/name argument`.

        The text that it returns is shown; a `Prompt` is sent to the model; nothing is fine. `complete(typed)` returns
        the texts that may stand behind the name. Without a description the docstring's first line is shown.
        """

        def add(function: F) -> F:
            own = check_name("command", name, self.registered.commands)
            said = description or next(iter((function.__doc__ or "").strip().splitlines()), "")
            self._open().commands[own] = OwnCommand(
                name=own,
                description=said or f"a command of the extension {self.name}",
                argument_hint=argument_hint,
                function=check_function(f"command {name}", function),
                complete=None if complete is None else check_function(f"completion of {name}", complete),
            )
            return function

        return add

    def provider(
        self,
        name: str,
        *,
        models: Sequence[Model] = (),
        base_url: str = "",
        wire: Wire = "openai-chat",
        api_key_env: str = "",
        headers: Mapping[str, str] | None = None,
        stream: Function | None = None,
    ) -> None:
        """Add a provider, whose models are `name/MODEL` in `/model`, `--model` and `tenuto models`.

        Either `base_url`, a server that speaks `wire`, with `api_key_env` naming the variable that has its key; or
        `stream`, an async generator that is given the `ModelRequest` and yields texts, and whatever else a model
        answers: `ThinkingDelta`, `ToolCallPart`, and a `Usage` (from `tenuto.protocol`).
        """
        own = check_name("provider", name, self.registered.providers)
        if bool(base_url) == (stream is not None):
            raise ValueError(f"the provider {name} needs either base_url or stream")
        if base_url and not base_url.startswith(("http://", "https://")):
            raise ValueError(f"the provider {name}: {base_url!r} is not a URL")
        if stream is not None and not models:
            raise ValueError(f"the provider {name} has no models")
        if wire not in get_args(Wire):
            raise ValueError(f"the provider {name}: there is no wire {wire!r}; there are {', '.join(get_args(Wire))}")
        self._open().providers[own] = OwnProvider(
            name=own,
            models=tuple(_facts(own, model) for model in models),
            base_url=base_url,
            wire=wire,
            api_key_env=api_key_env,
            headers=dict(headers or {}),
            stream=None if stream is None else check_function(f"stream of {name}", stream),
        )

    def strategy(self, name: str, strategy: Function) -> None:
        """Add a way to compact: `compaction.strategy = "NAME"` uses it. A class, or a function that returns an object.

        What it has to have is an `async def compact(self, ctx)`, as every strategy.
        """
        own = check_name("strategy", name, self.registered.strategies)
        self._open().strategies[own] = check_function(f"strategy {name}", strategy)

    @overload
    def on(
        self, hook: Literal["session_before_compact"], handler: Asked[SessionBeforeCompact, BeforeCompactAnswer]
    ) -> Handler: ...
    @overload
    def on(self, hook: Literal["session_compact"], handler: Told[SessionCompact]) -> Handler: ...
    @overload
    def on(self, hook: Literal["session_compact_failed"], handler: Told[SessionCompactFailed]) -> Handler: ...
    @overload
    def on(
        self, hook: Literal["session_before_tree"], handler: Asked[SessionBeforeTree, BeforeTreeAnswer]
    ) -> Handler: ...
    @overload
    def on(self, hook: Literal["session_tree"], handler: Told[SessionTree]) -> Handler: ...
    @overload
    def on(self, hook: type[AnyEventType], handler: Told[AnyEventType]) -> Handler: ...
    @overload
    def on(self, hook: str, handler: Handler) -> Handler: ...
    @overload
    def on(self, hook: str | type[Event]) -> Callable[[H], H]: ...

    def on(self, hook: str | type[Event], handler: Handler | None = None) -> Handler | Callable[[H], H]:
        """Have `handler(event)` called at a hook or for every event of a kind; without a handler, a decorator for one.

        Hooks are asked, and some wait for the answer; of events (`"tool_result"`, or the class `ToolResultEvent` from
        `tenuto.protocol.event`) the handler is told, one after the other, and nothing waits. Several handlers are
        called in the order in which they were added. Raises `ValueError` for a name that does not exist and
        `TypeError` for something that cannot be called.
        """
        if handler is not None:
            return self._add(hook, handler)
        return self._decorator(lambda function: self._add(hook, function))

    # --- at any time, from any thread ---

    @property
    def cwd(self) -> Path:
        """The working directory of the session that is open."""
        return self._outside.cwd()

    def notify(self, text: str, level: Level = "info") -> None:
        """Show the user a line."""
        self._outside.notify(text, level)

    def show_status(self, text: str | None) -> None:
        """Show a few words in the footer, as the item `extensions`; `None` takes them away. At most 40 characters."""
        self._outside.show_status(text)

    def request_compaction(self, focus: str = "") -> None:
        """Ask for a compaction whose summary stresses `focus`; made at the end of the present or next step.

        Nothing comes of it where there is nothing to compact.
        """
        self._outside.request_compaction(focus)

    def add_entry(self, text: str, *, keep: bool = False) -> None:
        """Add a text to what the model sees, at the end of the conversation, and to the log.

        While a task runs it waits for the end of the step. With `keep` it stands word for word beside the summary of
        every later compaction, as long as all such texts fit a twentieth of the window; else it is summarised like
        everything else.
        """
        if not isinstance(text, str) or not text.strip():  # pyright: ignore[reportUnnecessaryIsInstance] - foreign
            raise ValueError("an entry needs a text")
        self._outside.add_entry(text, keep)

    async def ask_model(self, prompt: str, *, system: str = "", max_tokens: int = 1_024) -> str:
        """Return the answer of the session's model to a prompt of its own; what it costs is the session's.

        At most 8,192 tokens of answer, and 20 questions between two prompts of the user. It ends with the turn that
        it is asked in. Raises `AskError` with the reason where there is no answer.
        """
        self._asking += 1
        try:
            return await asyncio.wrap_future(self._outside.ask_model(prompt, system, max_tokens))
        finally:
            self._asking -= 1

    # --- for the host ---

    @property
    def is_asking(self) -> bool:
        """Whether the model is being asked; that takes as long as it takes."""
        return self._asking > 0

    def close_registration(self) -> None:
        """Take nothing more: what is registered has been taken over."""
        self._is_open = False

    def handlers(self, hook: HookName) -> tuple[Handler, ...]:
        """Return what was added for a hook, in order."""
        return tuple(self._handlers[hook])

    def _open(self) -> Registered:
        if not self._is_open:
            raise RuntimeError("an extension registers in its setup(tenuto), and not later")
        return self.registered

    def _decorator(self, add: Callable[[Any], object]) -> Callable[[F], F]:
        def decorate(function: F) -> F:
            add(function)
            return function

        return decorate

    def _add_renderer(self, tool: str, function: Function) -> None:
        if tool not in self.registered.tools:
            raise ValueError(f"there is no tool {tool} of this extension{did_you_mean(tool, self.registered.tools)}")
        self._open().renderers[tool] = check_function(f"renderer of {tool}", function)

    def _add(self, hook: str | type[Event], handler: Handler) -> Handler:
        name = hook if isinstance(hook, str) else str(hook.__struct_config__.tag)
        check_function(f"handler of {name}", handler)
        for known in self._handlers:
            if name == known:
                self._handlers[known].append(handler)
                return handler
        if name not in EVENTS:
            near = did_you_mean(name, [*self._handlers, *EVENTS])
            hooks = ", ".join(self._handlers)
            raise ValueError(f"there is no hook {name!r}{near}; there are: {hooks}, and every event's name")
        self._open().events.setdefault(EVENTS[name], []).append(handler)
        return handler


def _facts(provider: str, model: Model) -> ModelFacts:
    if not isinstance(model, Model):  # pyright: ignore[reportUnnecessaryIsInstance] - foreign
        raise TypeError(f"the models of the provider {provider} have to be `Model`s")
    return ModelFacts(
        provider=provider,
        name=model.name,
        context_window=model.context_window,
        max_output_tokens=model.max_output_tokens,
        input_price=model.input_price,
        output_price=model.output_price,
        images=model.images,
        source="provider" if model.context_window else "default",
        output_source="provider" if model.max_output_tokens else "",
        price_source="provider" if model.input_price is not None else "",
    )
