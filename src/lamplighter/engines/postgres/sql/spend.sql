-- spend and its read: what is good for a single use. Index: the key of spent.

-- spend: note who used it, unless somebody has. Guard: unique key. As the owner of the store: those
-- who run jobs use up what is good once, and make nothing good again.
-- out  whether this holder has it
CREATE OR REPLACE FUNCTION spend(what_ text, holder_ text, keep_ bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, @schema@, pg_temp AS $$
DECLARE
    found_ text;
BEGIN
    INSERT INTO @schema@.spent (what, holder, ends)
    VALUES (what_, holder_, @schema@.now_ms() + keep_)
    ON CONFLICT (what) DO NOTHING;
    IF FOUND THEN
        RETURN true;
    END IF;
    SELECT s.holder INTO found_ FROM @schema@.spent AS s WHERE s.what = what_;
    RETURN coalesce(found_ = holder_, false);
END
$$;

-- is_spent: whether somebody has used it.
CREATE OR REPLACE FUNCTION is_spent(what_ text) RETURNS boolean
LANGUAGE sql STABLE SET search_path FROM CURRENT SET jit = off AS $$
    SELECT EXISTS (SELECT FROM spent WHERE spent.what = what_)
$$;
