-- What functions hand each other in one piece. These types are written as views, which can be replaced
-- along with the functions; nobody reads them.

-- lane_edge: a lane of a band, whether it is asked for, its edge, and what that says.
CREATE OR REPLACE VIEW lane_edge AS
SELECT NULL::integer AS lane, NULL::boolean AS asked, NULL::tid AS edge, NULL::bigint AS time,
       NULL::bigint AS due, NULL::bigint AS asleep;

-- band_line: a band with all its lanes in the course of a claim: the earliest of their edges as they were
-- found, and what there is to write: the clock, the snapshot of its look at the arrivals, and the lanes
-- whose edges may have moved.
CREATE OR REPLACE VIEW band_line AS
SELECT NULL::integer AS band, NULL::tid AS pulse, NULL::bigint AS clock, NULL::bigint AS old_clock,
       NULL::pg_snapshot AS seen, NULL::pg_snapshot AS looked, NULL::bigint AS due,
       NULL::bigint AS asleep, NULL::boolean AS done, NULL::integer[] AS touched,
       NULL::lane_edge[] AS lanes;

-- pick: a job that is handed out, its turn and where it stood there; its place in line, and its tenant's
-- time after it.
CREATE OR REPLACE VIEW pick AS
SELECT NULL::tid AS job, NULL::bigint AS number, NULL::integer AS lane, NULL::integer AS size,
       NULL::tid AS turn, NULL::text COLLATE "C" AS tenant, NULL::bigint AS due, NULL::bigint AS seq,
       NULL::bigint AS time, NULL::bigint AS paid;
