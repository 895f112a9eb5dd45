"""A program one of whose providers cannot do its work."""

from lamplighter import App, provided

app = App()
lonely = App()


class Db:
    pass


@app.provide
async def db() -> Db:
    raise ConnectionRefusedError("nobody listens on 5432")


@app.job
async def use(*, db: Db = provided(Db)) -> None: ...


@lonely.job
async def use_too(*, db: Db = provided(Db)) -> None: ...
