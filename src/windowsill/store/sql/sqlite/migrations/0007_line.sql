-- Those who wait for the lock of a session, in the order in which they came.
CREATE TABLE lease_line (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    holder TEXT NOT NULL,
    expires REAL NOT NULL,
    UNIQUE (session, holder)
);
