-- now_ms: the store's clock, the only one. Tests put another function in its place.
-- It is called under any search path: types and names leave nothing to be found elsewhere.

CREATE OR REPLACE FUNCTION now_ms() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    SELECT pg_catalog.floor(extract(epoch FROM pg_catalog.clock_timestamp()) * 1000::numeric)::bigint
$$;

-- mark_at: the stored form of who did something, why and when; the first two come as JSON.
CREATE OR REPLACE FUNCTION mark_at(mark_ text, now_ bigint) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT (mark_::pg_catalog.jsonb
            OPERATOR(pg_catalog.||) pg_catalog.jsonb_build_object('at'::pg_catalog.text, now_))::pg_catalog.text
$$;
