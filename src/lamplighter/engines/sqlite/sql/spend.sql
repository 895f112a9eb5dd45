-- spend: use up what is good for a single use. Index: the key of spent.

-- name: spend
-- in: what, holder, ends
INSERT INTO spent (what, holder, ends)
VALUES (:what, :holder, :ends)
ON CONFLICT (what) DO NOTHING;

-- name: holder
-- in: what
SELECT holder FROM spent WHERE what = :what;
