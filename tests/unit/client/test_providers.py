"""What handlers need: who makes it, in which order, and how mistakes are told."""

import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest

from lamplighter import App, Context, errors, provided, testing
from lamplighter.model.errors import InvalidArguments, InvalidHandler, ProviderFailed
from lamplighter.providers import Providers


class Db:
    def __init__(self, name: str = "real") -> None:
        self.name = name
        self.open = True


class Orders:
    def __init__(self, db: Db) -> None:
        self.db = db


async def async_generator() -> AsyncIterator[Db]:
    db = Db()
    yield db
    db.open = False


def generator() -> Iterator[Db]:
    db = Db()
    yield db
    db.open = False


@contextlib.asynccontextmanager
async def async_manager() -> AsyncIterator[Db]:
    db = Db()
    yield db
    db.open = False


class Managed:
    def __enter__(self) -> Db:
        self.db = Db()
        return self.db

    def __exit__(self, *_) -> None:
        self.db.open = False


def manager() -> contextlib.AbstractContextManager[Db]:
    return Managed()


async def coroutine() -> Db:
    return Db()


def plain() -> Db:
    return Db()


@pytest.mark.parametrize(
    ("function", "closes"),
    [
        (async_generator, True),
        (generator, True),
        (async_manager, True),
        (manager, True),
        (coroutine, False),
        (plain, False),
    ],
)
async def test_every_shape_of_provider_is_opened_and_closed(function, closes):
    providers = Providers()
    providers.add(function)

    async with providers.opened() as values:
        db = values[Db]
        assert isinstance(db, Db)
        assert db.open

    assert db.open is not closes


async def test_providers_open_after_what_they_need_and_close_before_it():
    told = []
    providers = Providers()

    @providers.add
    async def lifespan(orders: Orders) -> AsyncIterator[None]:
        told.append("lifespan")
        yield
        told.append("lifespan closed")

    @providers.add
    async def orders(db: Db) -> AsyncIterator[Orders]:
        told.append("orders")
        yield Orders(db)
        told.append("orders closed")

    @providers.add
    async def db() -> AsyncIterator[Db]:
        told.append("db")
        yield Db()
        told.append("db closed")

    async with providers.opened() as values:
        assert values[Orders].db is values[Db]

    opened = ["db", "orders", "lifespan"]
    assert told == [*opened, *(f"{name} closed" for name in reversed(opened))]


async def test_a_provider_that_fails_is_named_and_those_before_it_are_closed():
    providers = Providers()
    seen = []

    @providers.add
    def first() -> Iterator[Db]:
        seen.append(Db())
        yield seen[0]
        seen[0].open = False

    @providers.add
    async def second(db: Db) -> Orders:
        try:
            raise OSError("no route")
        finally:
            db.name = "used"

    with pytest.raises(ProviderFailed, match=r"second.*Orders.*no route"):
        async with providers.opened():
            pass
    assert not seen[0].open

    def broken() -> Iterator[Db]:
        raise SystemExit(1)
        yield Db()

    providers = Providers()
    providers.add(broken)
    with pytest.raises(ProviderFailed, match="SystemExit"):
        async with providers.opened():
            pass


def test_a_circle_is_told_by_its_names():
    providers = Providers()

    @providers.add
    def first(orders: Orders) -> Db: ...

    @providers.add
    def second(db: Db) -> Orders: ...

    with pytest.raises(InvalidHandler, match=r"first → .*second → .*first"):
        providers.check("charge", {"db": Db})


def test_a_missing_provider_is_told_with_parameter_type_and_remedy():
    app = App()

    @app.job
    async def charge(order_id: str, *, database: Db = provided(Db)) -> None: ...

    with pytest.raises(InvalidHandler, match=r"`charge` wants a Db as `database`") as raised:
        app.registry.check()
    assert "@app.provide" in raised.value.hint


def untyped():
    return Db()


def takes_anything(*args) -> Db:
    return Db()


def yields_unannounced() -> Db:
    yield Db()


@pytest.mark.parametrize("function", [untyped, takes_anything, yields_unannounced, 5])
def test_what_cannot_be_a_provider_is_refused(function):
    with pytest.raises(InvalidHandler) as raised:
        App().provide(function)
    assert raised.value.hint


def test_a_type_is_provided_once():
    app = App()
    app.provide(plain)
    with pytest.raises(InvalidHandler, match="two providers make Db"):
        app.provide(coroutine)


@pytest.fixture
def find(app):
    @app.job
    async def find(ctx: Context, key: str, *, db: Db = provided(Db)) -> str:
        return f"{key} in {db.name}, {'open' if db.open else 'closed'}"

    return find


async def test_what_is_provided_is_no_argument(app, find):
    assert "db" not in find.type.schema
    assert "db" not in find.type.signature.text
    await find.submit("a")
    with pytest.raises(InvalidArguments):
        await find.submit("a", db=Db())


def test_an_argument_behind_a_provided_parameter_is_refused():
    app = App()
    with pytest.raises(InvalidHandler, match=r"`size` comes after `db`"):

        @app.job
        def find(key: str, db: Db = provided(Db), size: int = 1) -> None: ...


def test_a_type_that_json_cannot_carry_hints_at_providers():
    app = App()
    with pytest.raises(InvalidHandler) as raised:

        @app.job
        def find(db: Db) -> None: ...

    assert "provided(Db)" in raised.value.hint


async def test_a_run_in_a_test_makes_what_it_needs(app, find):
    app.provide(async_generator)
    assert await testing.run(find, "a") == "a in real, open"


async def test_an_override_replaces_the_provider(app, find):
    with app.override(Db, Db("fake")):
        assert await testing.run(find, "a") == "a in fake, open"
    with pytest.raises(errors.InvalidHandler):
        await testing.run(find, "a")


async def test_a_direct_call_without_it_says_what_is_missing(find):
    with pytest.raises(AttributeError, match="give the Db yourself"):
        await find(Context.sample(), "a")
    assert await find(Context.sample(), "a", db=Db("own")) == "a in own, open"
