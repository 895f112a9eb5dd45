"""Whom `lamplighter serve` lets in, as its options say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lamplighter import config
from lamplighter.app import App
from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown

if TYPE_CHECKING:
    from lamplighter.server.jwts import Jwts
    from lamplighter.server.service import HttpService

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--require-token",
        is_flag=True,
        help="Ask for a token; `lamplighter token create` makes them.",
    ),
    click.option(
        "--key-file",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="Take one of the bearer keys in this file, one per line, too.",
    ),
    click.option(
        "--jwt-keys",
        metavar="FILE",
        multiple=True,
        type=click.Path(path_type=Path),
        help="Take JWTs, too, that a key in this file has signed.",
    ),
    click.option(
        "--jwks",
        metavar="FILE|URL",
        multiple=True,
        help="The same with the keys of a JSON Web Key Set.",
    ),
    click.option("--jwt-issuer", metavar="TEXT", help="Issuer of the tokens of --jwks."),
    click.option("--jwt-audience", metavar="TEXT", help="Their audience: this service."),
)


def admission_options(command: Command) -> Command:
    """Let the user say who is let in."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Whom a service lets in."""

    require_token: bool
    key_file: Path | None
    jwt_keys: tuple[Path, ...]
    jwks: tuple[str, ...]
    jwt_issuer: str | None
    jwt_audience: str | None

    @property
    def asks(self) -> bool:
        """Whether who is calling has to say who they are."""
        return self.require_token or bool(self.key_file or self.jwt_keys or self.jwks)

    def check(self, host: str) -> None:
        """Refuse an address that all could reach, and secrets and files that cannot be used."""
        from lamplighter.server.auth import check_address, check_secret

        self._check_claims()
        check_address(host, asks=self.asks)
        check_secret(config.load().http_secret)
        self._keys()
        self._jwts(longest=0)

    def _check_claims(self) -> None:
        """Refuse an issuer or audience of no keys: nobody would be asked for a token."""
        given = {"--jwt-issuer": self.jwt_issuer, "--jwt-audience": self.jwt_audience}
        for option, value in given.items():
            if value is not None and not self.jwks:
                raise InvalidOption(
                    f"{option} {shown(value)} says whose tokens are taken, but there is no --jwks "
                    "with their keys",
                    hint="add --jwks; a file of --jwt-keys has issuer and audience in it",
                    value=value,
                )

    def service(self, app: App) -> HttpService:
        """Make the service of a program."""
        from lamplighter.server.service import HttpService

        settings = app.settings
        jwts = self._jwts(
            longest=settings.http_jwt_lifetime, needs_tenant=bool(settings.http_jwt_tenant)
        )
        return HttpService(app, self._keys(), tokens=self.require_token, jwts=jwts)

    def _keys(self) -> list[str]:
        from lamplighter.server.auth import read_keys

        return [] if self.key_file is None else read_keys(self.key_file)

    def _jwts(self, *, longest: float, needs_tenant: bool = False) -> Jwts | None:
        from lamplighter.server.jwts import jwts_of

        return jwts_of(
            self.jwt_keys,
            self.jwks,
            issuer=self.jwt_issuer,
            audience=self.jwt_audience,
            longest=longest,
            needs_tenant=needs_tenant,
        )
