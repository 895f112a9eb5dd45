"""Head and body of an answer go out together."""

import asyncio

from lamplighter.server.joined import Joined


class Noted(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed = False

    def write(self, data):
        self.sent.append(data)

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed

    def get_write_buffer_size(self):
        return 7


async def test_what_is_written_together_is_sent_together():
    transport = Noted()
    joined = Joined(transport, asyncio.get_running_loop())
    joined.write(b"head ")
    joined.write(b"body")
    assert transport.sent == []
    joined.flush()
    joined.flush()
    assert transport.sent == [b"head body"]


async def test_a_part_does_not_wait_for_the_rest():
    transport = Noted()
    joined = Joined(transport, asyncio.get_running_loop())
    joined.write(b"head")
    await asyncio.sleep(0)
    assert transport.sent == [b"head"]


async def test_closing_sends_first_and_afterwards_nothing_is_sent():
    transport = Noted()
    joined = Joined(transport, asyncio.get_running_loop())
    joined.write(b"last")
    joined.close()
    joined.write(b"too late")
    await asyncio.sleep(0)
    assert transport.sent == [b"last"]
    assert joined.is_closing()
    assert joined.get_write_buffer_size() == 7
