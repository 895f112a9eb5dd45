"""TLS: the same calls, encrypted, to a server that proves who it is."""

import asyncio
import os
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from lamplighter.connect import connect
from lamplighter.engines.redis.transport import Transport
from lamplighter.model.errors import InvalidUrl, StoreUnreachable
from tests.servers.valkey import Server


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for this machine that signs itself, and its key."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost"],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return cert, key


@pytest.fixture
async def secure_port(
    request: pytest.FixtureRequest, server: Server, certificate: tuple[Path, Path]
) -> AsyncIterator[int]:
    """A port that speaks TLS and passes everything on to the server, in small pieces."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    if getattr(request, "param", None) == "who are you?":
        context.load_verify_locations(certificate[0])
        context.verify_mode = ssl.CERT_REQUIRED

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(5_000):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", server.port)
        await asyncio.gather(carry(reader, inner_writer), carry(inner_reader, writer))

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as proxy:
        yield proxy.sockets[0].getsockname()[1]


async def test_calls_of_any_size_go_through(
    secure_port: int, certificate: tuple[Path, Path], make_transport: Callable[..., Transport]
):
    transport = make_transport(f"rediss://localhost:{secure_port}?ca={certificate[0]}")
    texts = [b"small", os.urandom(3_000_000), b"", os.urandom(70_000)]

    assert await transport.run("open", ("look", 1, 1)) == [b"none"]
    assert await asyncio.gather(*(transport.command("ECHO", one) for one in texts)) == texts
    await transport.close()


async def test_a_server_nobody_vouches_for_is_refused_at_once(
    secure_port: int, make_transport: Callable[..., Transport]
):
    transport = make_transport(f"rediss://localhost:{secure_port}")

    with pytest.raises(StoreUnreachable, match="certificate verify failed") as refused:
        await transport.command("PING")

    assert "ca=" in refused.value.hint


async def test_a_server_of_another_name_is_refused(
    secure_port: int, certificate: tuple[Path, Path], make_transport: Callable[..., Transport]
):
    transport = make_transport(f"rediss://127.0.0.1:{secure_port}?ca={certificate[0]}")

    with pytest.raises(StoreUnreachable, match="certificate verify failed"):
        await transport.command("PING")


@pytest.mark.parametrize("secure_port", ["who are you?"], indirect=True)
async def test_a_server_that_wants_a_certificate_of_ours_gets_it(
    secure_port: int, certificate: tuple[Path, Path], make_transport: Callable[..., Transport]
):
    cert, key = certificate
    anonymous = f"rediss://localhost:{secure_port}?ca={cert}"
    transport = make_transport(f"{anonymous}&cert={cert}&key={key}")

    assert await transport.command("PING") == b"PONG"
    await transport.close()

    engine = connect(anonymous, deadline=1.0)
    with pytest.raises(StoreUnreachable) as refused:
        await engine.open()
    assert "cert=" in refused.value.hint


async def test_a_server_without_tls_is_told_from_one_that_is_away(
    server: Server, make_transport: Callable[..., Transport]
):
    transport = make_transport(f"rediss://localhost:{server.port}", deadline=1.0)

    with pytest.raises(StoreUnreachable) as refused:
        await transport.command("PING")

    assert "TLS" in refused.value.hint


async def test_a_file_that_is_not_there_is_named(
    server: Server, make_transport: Callable[..., Transport]
):
    transport = make_transport(f"rediss://localhost:{server.port}?ca=/no/such/file", deadline=0.3)

    with pytest.raises(InvalidUrl, match="No such file") as refused:
        await transport.command("PING")

    assert "ca=" in refused.value.hint
