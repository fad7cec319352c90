-- A step of its own: an append that began before the last one and ends after this one would leave the tip behind, until
-- the next append to its session.
DROP TRIGGER move_tip ON windowsill.entry;
DROP FUNCTION windowsill.move_tip();

-- Short values never leave their row: the tables that would hold them took 8 KB each.
ALTER TABLE windowsill.tip ALTER COLUMN hash SET STORAGE PLAIN;
ALTER TABLE windowsill.place ALTER COLUMN key SET STORAGE PLAIN;
ALTER TABLE windowsill.lease ALTER COLUMN session SET STORAGE PLAIN, ALTER COLUMN holder SET STORAGE PLAIN;
ALTER TABLE windowsill.lease_line ALTER COLUMN session SET STORAGE PLAIN, ALTER COLUMN holder SET STORAGE PLAIN;
CLUSTER windowsill.tip USING tip_pkey;
CLUSTER windowsill.place USING place_pkey;
CLUSTER windowsill.lease USING lease_pkey;
CLUSTER windowsill.lease_line USING lease_line_pkey;
ALTER TABLE windowsill.tip SET WITHOUT CLUSTER;
ALTER TABLE windowsill.place SET WITHOUT CLUSTER;
ALTER TABLE windowsill.lease SET WITHOUT CLUSTER;
ALTER TABLE windowsill.lease_line SET WITHOUT CLUSTER;
