-- Bodies, blobs and views are packed from here on, which workers of an earlier version cannot read: those that begin with
-- C1 say in the next byte how. What was written before and happens to begin so is marked as plain.
UPDATE windowsill.entry SET body = '\xc100'::bytea || body WHERE substring(body FROM 1 FOR 1) = '\xc1'::bytea;
UPDATE windowsill.blob SET data = '\xc100'::bytea || data WHERE substring(data FROM 1 FOR 1) = '\xc1'::bytea;
UPDATE windowsill.snapshot SET data = '\xc100'::bytea || data WHERE substring(data FROM 1 FOR 1) = '\xc1'::bytea;

-- The server would only try in vain to make them shorter.
ALTER TABLE windowsill.entry ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE windowsill.blob ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE windowsill.snapshot ALTER COLUMN data SET STORAGE EXTERNAL;
