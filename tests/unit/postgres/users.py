"""Three users of a store: the owner, one who runs jobs and one who looks."""

from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg import sql

from lamplighter.connect import connect
from tests.servers.stores import postgres_schemas


class Users:
    """Three users of one store, and its addresses for them."""

    def __init__(self, url: str, number: int) -> None:
        self.owner, self.run, self.read = (
            f"{what}_{number}" for what in ("owner", "runner", "reader")
        )
        self.schema = url.partition("schema=")[2].partition("&")[0]
        self._url = url

    def url(self, user: str) -> str:
        return self._url.replace("//postgres@", f"//{user}@")

    async def install(self, clock_ms: Callable[[], int] | None = None) -> None:
        made = connect(self.url(self.owner), clock_ms=clock_ms)
        await made.migrate()
        await made.grant(run=[self.run], read=[self.read])


@pytest.fixture
def make_users(tmp_path) -> Iterator[Callable[[], Users]]:
    """New stores with users of their own, who own nothing else."""
    made: list[Users] = []
    with postgres_schemas(tmp_path) as fresh:
        admin_url = fresh().partition("?")[0]

        def make() -> Users:
            users = Users(fresh(), len(made))
            with psycopg.connect(admin_url, autocommit=True) as admin:
                for user in (users.owner, users.run, users.read):
                    admin.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(user)))
                admin.execute(f"CREATE SCHEMA {users.schema} AUTHORIZATION {users.owner}")
            made.append(users)
            return users

        yield make
        with psycopg.connect(admin_url, autocommit=True) as admin:
            for users in made:
                admin.execute(f"DROP SCHEMA IF EXISTS {users.schema} CASCADE")
                for user in (users.owner, users.run, users.read):
                    admin.execute(f"DROP OWNED BY {user} CASCADE")
                    admin.execute(f"DROP ROLE {user}")


@pytest.fixture
def users(make_users: Callable[[], Users]) -> Users:
    return make_users()


@pytest.fixture
def admin(users: Users) -> Iterator[psycopg.Connection]:
    """Looks into the store as a superuser."""
    url = users.url("postgres").partition("?")[0]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT set_config('search_path', %s, false)", (users.schema,))
        yield connection
