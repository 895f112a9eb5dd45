"""What both FastAPI programs share: the body, its checks, and who may send it."""

from __future__ import annotations

import os
import secrets
from typing import Annotated

from fastapi import Depends, HTTPException
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field

_bearer = HTTPBearer()
_key = os.environ["BENCHMARK_KEY"]


class Arguments(BaseModel):
    """The same shape as the schema that our type has published."""

    model_config = ConfigDict(extra="forbid")

    order_id: str
    cents: Annotated[int, Field(ge=0)]
    customer: str


class Submission(BaseModel):
    model_config = ConfigDict(extra="forbid")

    type: str
    arguments: Arguments


class Submitted(BaseModel):
    id: str
    answer: str


async def check_key(given: Annotated[HTTPAuthorizationCredentials, Depends(_bearer)]) -> None:
    if not secrets.compare_digest(given.credentials, _key):
        raise HTTPException(401)


CHECKED = [Depends(check_key)]
