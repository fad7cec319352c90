-- Bodies, blobs and views are packed from here on: those that begin with C1 say in the next byte how. What was written
-- before and happens to begin so is marked as plain.
UPDATE body SET data = CAST(x'c100' || data AS BLOB) WHERE substr(data, 1, 1) = x'c1';
UPDATE blob SET data = CAST(x'c100' || data AS BLOB) WHERE substr(data, 1, 1) = x'c1';
UPDATE snapshot SET data = CAST(x'c100' || data AS BLOB) WHERE substr(data, 1, 1) = x'c1';
