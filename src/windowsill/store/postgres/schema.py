"""Bring a database to the schema this version knows, beside workers of other versions, or refuse it untouched.

A step adds to what is there, so that older workers go on beside it. A step whose name ends with `_post` takes away what
they need: only `windowsill store migrate` applies it, and a worker that does not know it refuses the database.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from psycopg import sql

from windowsill.errors import StoreError
from windowsill.store.postgres.pool import Address, Connection, connect, execute, translated
from windowsill.store.statements import Migration, migrations

_SCHEMA = re.compile(r"\bwindowsill(?=[.'])")

_POST = "_post"

_TABLE = """
CREATE TABLE windowsill.migration (
    version integer PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    applied timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""

_INSERT = "INSERT INTO windowsill.migration (version, name, checksum)"
_RECORD = _INSERT + " VALUES (%(version)s, %(name)s, %(checksum)s)"

_TABLES = (
    "SELECT c.relname::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
    "WHERE n.nspname = %(schema)s AND c.relname = ANY(%(names)s)"
)
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('windowsill migration ' || %(schema)s, 0))"


def in_schema(statement: str, schema: str) -> str:
    """Write a statement for another schema than the one the files name."""
    return _SCHEMA.sub('"' + schema.replace("\\", "\\\\") + '"', statement)


def applied(db: Connection, schema: str) -> dict[int, str]:
    """Return the names of the steps that a database has had, by their numbers."""
    # Not to_regclass: it may remember that there was none, from before the wait for another process.
    if not execute(db, _TABLES, {"schema": schema, "names": ["migration"]}):
        return {}
    return dict(execute(db, in_schema("SELECT version, name FROM windowsill.migration ORDER BY version", schema)))


def missing(done: dict[int, str], steps: Sequence[Migration], *, post: bool) -> list[Migration]:
    """Return the steps that are still to be applied."""
    return [step for step in steps if step.version not in done and (post or not step.name.endswith(_POST))]


def migrate(db: Connection, address: Address, steps: Sequence[Migration], *, post: bool = False) -> list[Migration]:
    """Apply the steps that are missing, each in a transaction of its own; return them."""
    done = applied(db, address.schema)
    _refuse(done, steps, address.name)
    made = []
    # Nobody works with a database that has nothing yet.
    for step in missing(done, steps, post=post or not done):
        with db.transaction():
            # Another process may have done it while this one waited for the lock.
            execute(db, _LOCK, {"schema": address.schema})
            done = applied(db, address.schema)
            if step.version in done:
                continue
            if not done:
                _prepare(db, address)
            db.execute(in_schema(step.script, address.schema))
            execute(db, in_schema(_RECORD, address.schema), _record(step))
            made.append(step)
    return made


def pending_sql(url: str) -> str:
    """Return the SQL of the steps that a database lacks, without changing it."""
    address = Address(url)
    with connect(address) as db, translated(address.name):
        return script(applied(db, address.schema), migrations("postgres"), address.schema)


def script(done: dict[int, str], steps: Sequence[Migration], schema: str) -> str:
    """Return the SQL of the steps that are missing, for an administrator to run."""
    wanted = missing(done, steps, post=True)
    if not wanted:
        return ""
    parts = ["BEGIN;", f"SELECT pg_advisory_xact_lock(hashtextextended('windowsill migration {schema}', 0));"]
    if not done:
        parts += [f'CREATE SCHEMA IF NOT EXISTS "{schema}";', f"{_TABLE.strip()};"]
    for step in wanted:
        values = ", ".join(f"'{value}'" for value in _record(step).values())
        parts += [f"-- {step.name}", step.script.strip()]
        parts.append(_INSERT + f" VALUES ({values});")
    return in_schema("\n\n".join([*parts, "COMMIT;\n"]), schema)


def _record(step: Migration) -> dict[str, object]:
    return {"version": step.version, "name": step.name, "checksum": hashlib.sha256(step.script.encode()).hexdigest()}


def _refuse(done: dict[int, str], steps: Sequence[Migration], name: str) -> None:
    known = {step.version for step in steps}
    newer = [step for version, step in done.items() if version not in known and step.endswith(_POST)]
    if newer:
        raise StoreError(
            f"{name} has had the step {newer[0]}, which this Windowsill does not know",
            remedy="upgrade windowsill; the database was left as it is",
        )


def _prepare(db: Connection, address: Address) -> None:
    """Make the schema and its list of steps; a schema of somebody else's tables is refused."""
    schema, name = address.schema, address.name
    ((encoding,),) = execute(db, "SELECT current_setting('server_encoding')")
    if encoding != "UTF8":
        raise StoreError(f"{name} is encoded as {encoding}", remedy="create a database with ENCODING 'UTF8'")
    # Not IF NOT EXISTS: that asks for the right to create schemas even where there is one already.
    if not execute(db, "SELECT 1 FROM pg_namespace WHERE nspname = %(schema)s", {"schema": schema}):
        db.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    if execute(db, _TABLES, {"schema": schema, "names": ["session", "entry", "blob", "fact"]}):
        raise StoreError(
            f"the schema {schema!r} of {name} holds tables of another program",
            remedy="give another one with ?schema=NAME; it was left as it is",
        )
    db.execute(in_schema(_TABLE, schema))
