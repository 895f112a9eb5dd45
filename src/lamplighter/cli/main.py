"""The command `lamplighter`: its commands, and how it speaks of errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any, NoReturn

import click

from lamplighter.cli.audit import audit
from lamplighter.cli.cron import cron
from lamplighter.cli.dev import dev
from lamplighter.cli.dlq import dlq
from lamplighter.cli.doctor import doctor
from lamplighter.cli.jobs import jobs
from lamplighter.cli.migrate import migrate
from lamplighter.cli.output import printable
from lamplighter.cli.queues import queues
from lamplighter.cli.schedules import schedules
from lamplighter.cli.serve import serve
from lamplighter.cli.start import INTERRUPTED
from lamplighter.cli.submit import submit
from lamplighter.cli.tenants import tenants
from lamplighter.cli.token import token
from lamplighter.cli.types import types
from lamplighter.cli.why import why
from lamplighter.cli.worker import worker
from lamplighter.cli.workers import workers
from lamplighter.model.errors import LamplighterError

FAILED = 1
MISUSED = 2


class Lamplighter(click.Group):
    """All commands; whatever goes wrong in one is told as `error:` and `hint:`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands in the order in which people meet them."""
        return list(self.commands)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 - click's own signature
        windows_expand_args: bool = True,  # noqa: FBT001, FBT002
        **extra: Any,
    ) -> NoReturn:
        """Run a command and end the process with its exit code."""
        try:
            code: object = super().main(
                args, prog_name, complete_var, standalone_mode=False, **extra
            )
            sys.stdout.flush()
        except LamplighterError as error:
            _complain(error.cause, error.hint)
            code = FAILED
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            code = MISUSED
        except click.UsageError as error:
            _complain(error.format_message(), f"try `{self._path(args, error)} --help`")
            code = MISUSED
        except click.ClickException as error:
            _complain(error.format_message(), "")
            code = FAILED
        except (click.Abort, KeyboardInterrupt):
            code = INTERRUPTED
        except BrokenPipeError:
            # Whoever read our output has seen enough. Python must not complain about it either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = FAILED
        except OSError as error:
            _complain(str(error), "check that files and folders exist and may be used by you")
            code = FAILED
        sys.exit(code if isinstance(code, int) else 0)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find a command; `tokens` is `token`, because all other lists have the plural's name."""
        return super().get_command(ctx, "token" if cmd_name == "tokens" else cmd_name)

    def _path(self, args: Sequence[str] | None, error: click.UsageError) -> str:
        """Name the command that was misused; an option without its value does not tell."""
        if error.ctx is not None:
            return error.ctx.command_path
        command: click.Command | None = self
        path = ["lamplighter"]
        for word in sys.argv[1:] if args is None else args:
            command = command.commands.get(word) if isinstance(command, click.Group) else None
            if command is None:
                break
            path.append(word)
        return " ".join(path)


def _complain(cause: str, hint: str) -> None:
    click.echo(click.style("error: ", fg="red", bold=True) + printable(cause), err=True)
    if hint:
        click.echo("\n" + click.style("hint: ", fg="cyan", bold=True) + printable(hint), err=True)


@click.group(
    "lamplighter", cls=Lamplighter, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(metadata.version("lamplighter"), message="%(prog)s %(version)s")
def main() -> None:
    """Every lamp lit, on time, once: a distributed job scheduler.

    Begin with `lamplighter dev MODULE:APP`, which runs a program's jobs in one command.
    """


for command in (
    dev,
    worker,
    serve,
    submit,
    jobs,
    why,
    dlq,
    schedules,
    queues,
    tenants,
    types,
    workers,
    token,
    audit,
    cron,
    migrate,
    doctor,
):
    main.add_command(command)
