"""What a session has kept after its transaction ended, and should not have."""

from dataclasses import dataclass

# A parameter that no extension declares stands in no view; ours is empty outside a transaction.
STATE = b"""
SELECT 'prepared statement ' || name FROM pg_prepared_statements
UNION ALL
SELECT format('advisory lock (%s, %s)', classid, objid) FROM pg_locks
WHERE locktype = 'advisory' AND pid = pg_backend_pid()
UNION ALL
SELECT 'LISTEN ' || channel FROM pg_listening_channels() AS channel
UNION ALL
SELECT format('SET %s = %s', name, setting) FROM pg_settings WHERE source = 'session'
UNION ALL
SELECT 'SET lamplighter.now = ' || setting
FROM current_setting('lamplighter.now', true) AS setting WHERE setting <> ''
UNION ALL
SELECT 'SET ROLE ' || current_user WHERE current_user <> session_user
UNION ALL
SELECT 'cursor ' || name FROM pg_cursors WHERE is_holdable
UNION ALL
SELECT 'temporary table ' || relname FROM pg_class WHERE relnamespace = pg_my_temp_schema()
"""


@dataclass(frozen=True, slots=True)
class Leak:
    """Something that the next user of a server connection would have found there."""

    pid: int
    """The server's process."""
    what: str
    statements: tuple[str, ...]
    """What ran there since the last look, the latest last."""

    def __str__(self) -> str:
        lines = "\n".join(f"    {one}" for one in self.statements)
        return f"{self.what}, left in the session of process {self.pid} by one of\n{lines}"
