-- now_ms: the store's clock, the only one. Tests put another function in its place.

CREATE OR REPLACE FUNCTION now_ms() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
$$;

-- mark_at: the stored form of who did something, why and when; the first two come as JSON.
CREATE OR REPLACE FUNCTION mark_at(mark_ text, now_ bigint) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT (mark_::jsonb || jsonb_build_object('at', now_))::text
$$;
