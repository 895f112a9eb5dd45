"""A handler whose arguments are read by code of the program, which may hurt its process."""

import os
import time

from pydantic import BaseModel, field_validator

from lamplighter import App, Context
from tests.system.program import note

app = App()


class Order(BaseModel):
    """An order that some of its own numbers are bad for."""

    number: int

    @field_validator("number")
    @classmethod
    def check(cls, number: int) -> int:
        if number == 13:
            os._exit(7)
        if number == 99:
            time.sleep(3600)
        return number


@app.job(delivery="at_most_once", timeout=0.5, hard_after=0.5)
async def charge(ctx: Context, order: Order) -> int:
    note(ctx, "run")
    return order.number
