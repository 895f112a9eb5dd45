"""What handlers need beside their arguments: made once per process, found by its type.

A provider is a function whose return annotation names what it makes. All of them are opened when
a child process starts, before its first claim, and closed after its last handler.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from types import NoneType
from typing import Any, NoReturn, TypeVar, cast, get_args, get_origin, get_type_hints

from lamplighter.model.errors import InvalidHandler, LamplighterError, ProviderFailed
from lamplighter.model.names import shown

T = TypeVar("T")

_GENERATORS = frozenset(
    {AsyncIterator, AsyncGenerator, AsyncIterable, Iterator, Generator, Iterable}
)
_MANAGERS = frozenset({contextlib.AbstractContextManager, contextlib.AbstractAsyncContextManager})
_FORM = "write for example `async def db() -> AsyncIterator[Db]: …`"


class Provided:
    """The default of a parameter that a worker fills in."""

    __slots__ = ("kind",)

    def __init__(self, kind: object) -> None:
        self.kind = kind

    def __getattr__(self, name: str) -> NoReturn:
        kind = name_of(self.kind)
        raise AttributeError(
            f"{name}: this is no {kind}, only a worker fills in what is provided; "
            f"in a direct call give the {kind} yourself, by name"
        )

    def __repr__(self) -> str:
        return f"provided({name_of(self.kind)})"


def provided(kind: type[T]) -> T:
    """Mark a parameter that the worker fills in, by its default.

    As in ``db: Db = provided(Db)``. It is no argument of the job: ``submit`` neither needs nor
    takes it.
    """
    return cast("T", Provided(kind))


class Provider:
    """One function that makes something, and what it needs for that."""

    def __init__(self, function: Callable[..., object]) -> None:
        if not callable(function):
            _refuse(function, f"{shown(function)} is no function", _FORM)
        self.function = function
        self.name: str = getattr(function, "__qualname__", type(function).__name__)
        hints = _hints(function, self.name)
        self.kind, self._managed = self._made(hints)
        self.needs = self._read_needs(hints)
        """What its parameters are filled with, by name."""

    def _made(self, hints: Mapping[str, object]) -> tuple[object, bool]:
        """Return the type it makes, and whether there is something to close in the end."""
        if "return" not in hints:
            _refuse(self.function, f"the provider `{self.name}` does not say what it makes", _FORM)
        made = hints["return"]
        origin, yields = get_origin(made), _yields(self.function)
        if origin in _GENERATORS or origin in _MANAGERS:
            return get_args(made)[0], True
        if yields:
            _refuse(
                self.function,
                f"the provider `{self.name}` yields, but is annotated as {name_of(made)}",
                f"annotate it as AsyncIterator[{name_of(made)}] or Iterator[{name_of(made)}]",
            )
        return made, False

    def _read_needs(self, hints: Mapping[str, object]) -> dict[str, object]:
        needs: dict[str, object] = {}
        for parameter in inspect.signature(self.function).parameters.values():
            if isinstance(parameter.default, Provided):
                needs[parameter.name] = parameter.default.kind
            elif parameter.default is not parameter.empty:
                continue
            elif parameter.name in hints and parameter.kind in _BY_NAME:
                needs[parameter.name] = hints[parameter.name]
            else:
                _refuse(
                    self.function,
                    f"the provider `{self.name}` takes `{parameter}`, which nobody can fill in",
                    "annotate the parameter with the type of another provider, or remove it",
                )
        return needs

    async def open(self, stack: contextlib.AsyncExitStack, values: Mapping[object, object]) -> Any:
        """Make it; what has to be closed is put on the stack."""
        function = self.function
        if inspect.isasyncgenfunction(function):
            function = contextlib.asynccontextmanager(function)
        elif inspect.isgeneratorfunction(function):
            function = contextlib.contextmanager(function)
        made = function(**{name: values[kind] for name, kind in self.needs.items()})
        if inspect.isawaitable(made):
            made = await cast("Awaitable[object]", made)
        if not self._managed:
            return made
        if isinstance(made, contextlib.AbstractAsyncContextManager):
            return await stack.enter_async_context(
                cast("contextlib.AbstractAsyncContextManager[object]", made)
            )
        if isinstance(made, contextlib.AbstractContextManager):
            return stack.enter_context(cast("contextlib.AbstractContextManager[object]", made))
        raise InvalidHandler(
            f"the provider `{self.name}` returned {shown(made)}, which is no context manager",
            hint="return what its annotation says, or `yield` it",
            value=self.function,
        )


class Providers:
    """The providers of one program, by the type they make."""

    def __init__(self) -> None:
        self._by_kind: dict[object, Provider] = {}
        self._lifespans: list[Provider] = []
        self._overrides: dict[object, object] = {}

    def add(self, function: Callable[..., object]) -> Provider:
        """Take in a provider; a type can be provided once."""
        provider = Provider(function)
        if provider.kind in {None, NoneType}:
            self._lifespans.append(provider)
            return provider
        known = self._by_kind.get(provider.kind)
        if known is not None:
            _refuse(
                function,
                f"two providers make {name_of(provider.kind)}: `{known.name}` and "
                f"`{provider.name}`",
                "remove one, or let it make a class of its own",
            )
        self._by_kind[provider.kind] = provider
        return provider

    @contextlib.contextmanager
    def override(self, kind: type[T], value: T) -> Generator[None]:
        """Provide ``value`` instead of what the provider makes, within a ``with`` block."""
        before = dict(self._overrides)
        self._overrides[kind] = value
        try:
            yield
        finally:
            self._overrides = before

    def check(self, owner: str, needs: Mapping[str, object]) -> None:
        """Raise InvalidHandler unless everything that ``owner`` needs can be made."""
        self._order(owner, needs)

    @contextlib.asynccontextmanager
    async def opened(
        self, needs: Iterable[object] | None = None
    ) -> AsyncGenerator[Mapping[object, object]]:
        """Make these types and what they need; without ``needs``, everything there is."""
        wanted = self._by_kind if needs is None else needs
        order = self._order("the program", {name_of(kind): kind for kind in wanted})
        if needs is None:
            for lifespan in self._lifespans:
                for provider in self._order(lifespan.name, lifespan.needs):
                    if provider not in order:
                        order.append(provider)
                order.append(lifespan)
        values = dict(self._overrides)
        stack = contextlib.AsyncExitStack()
        try:
            for provider in order:
                values[provider.kind] = await _opened(provider, stack, values)
            yield values
        finally:
            # Not by leaving it with the error: what stands behind a `yield` runs in any case.
            await stack.aclose()

    def _order(self, owner: str, needs: Mapping[str, object]) -> list[Provider]:
        """List the providers so that each comes after those it needs."""
        order: list[Provider] = []
        self._visit(owner, needs, order, ())
        return order

    def _visit(
        self,
        owner: str,
        needs: Mapping[str, object],
        order: list[Provider],
        path: tuple[Provider, ...],
    ) -> None:
        for parameter, kind in needs.items():
            if kind in self._overrides:
                continue
            provider = self._by_kind.get(kind)
            if provider is None:
                self._missing(owner, parameter, kind)
            if provider in path:
                names = [each.name for each in (*path[path.index(provider) :], provider)]
                _refuse(
                    provider.function,
                    f"providers need each other in a circle: {' → '.join(names)}",
                    "let one of them make what it needs itself",
                )
            if provider not in order:
                self._visit(provider.name, provider.needs, order, (*path, provider))
                order.append(provider)

    def _missing(self, owner: str, parameter: str, kind: object) -> NoReturn:
        known = ", ".join(sorted(name_of(kind) for kind in self._by_kind)) or "nothing"
        _refuse(
            kind,
            f"`{owner}` wants a {name_of(kind)} as `{parameter}`, but no provider makes one",
            f"decorate a function that returns {name_of(kind)} with `@app.provide`, in a module "
            f"that is imported with the app; provided here: {known}",
        )


async def _opened(
    provider: Provider, stack: contextlib.AsyncExitStack, values: Mapping[object, object]
) -> object:
    try:
        return await provider.open(stack, values)
    except LamplighterError:
        raise
    except (Exception, SystemExit) as error:
        kind = "" if provider.kind in {None, NoneType} else f" of {name_of(provider.kind)}"
        raise ProviderFailed(
            f"the provider `{provider.name}`{kind} failed: {type(error).__name__}: {error}",
            hint="a worker needs all that its program provides; make what the provider opens "
            "reachable, or let the provider open it when it is first used",
            value=provider.kind,
        ) from error


_BY_NAME = frozenset({inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY})


def name_of(kind: object) -> str:
    """Write a type as people do."""
    return str(getattr(kind, "__qualname__", kind))


def _yields(function: Callable[..., object]) -> bool:
    return inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function)


def _hints(function: Callable[..., object], name: str) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except Exception as error:  # noqa: BLE001 - evaluating annotations runs foreign code
        _refuse(
            function,
            f"an annotation of the provider `{name}` cannot be read: {error}",
            "define or import the class at the top of the module, outside of `if TYPE_CHECKING:`",
        )


def _refuse(function: object, cause: str, remedy: str) -> NoReturn:
    raise InvalidHandler(cause, hint=remedy, value=function) from None
