-- Those who wait for the lock of a session, in the order in which they came.
CREATE TABLE windowsill.lease_line (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session text COLLATE "C" NOT NULL,
    holder text COLLATE "C" NOT NULL,
    expires double precision NOT NULL,
    UNIQUE (session, holder)
) WITH (fillfactor = 50);
