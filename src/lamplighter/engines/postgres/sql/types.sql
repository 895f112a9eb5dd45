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

-- job_batch: new jobs, as submit describes them; they have no keys, and whose they are says the caller.
CREATE OR REPLACE VIEW job_batch AS
SELECT NULL::text[] AS queues, NULL::smallint[] AS levels, NULL::text[] AS types,
       NULL::text[] AS requirements, NULL::uuid[] AS ids, NULL::integer[] AS lane_of,
       NULL::text[] AS tenants, NULL::integer[] AS starts, NULL::integer[] AS sizes,
       NULL::bytea AS args, NULL::bigint[] AS delays, NULL::bigint[] AS instants,
       NULL::text[] AS extras, NULL::text[] AS deliveries, NULL::integer[] AS costs,
       NULL::boolean[] AS held, NULL::text AS mark;

-- fire_call: plans for schedules, what they skip and what they run, see fire.
CREATE OR REPLACE VIEW fire_call AS
SELECT NULL::text[] AS ids, NULL::bigint[] AS versions, NULL::bigint[] AS cursors,
       NULL::bigint[] AS nexts, NULL::bigint[] AS dues, NULL::text[] AS holds,
       NULL::text[] AS backfills, NULL::text[] AS zones, NULL::bigint[] AS goods,
       NULL::bigint[] AS rests, NULL::integer[] AS run_counts,
       NULL::integer[] AS skip_of, NULL::bigint[] AS skip_dues, NULL::bigint[] AS firsts,
       NULL::text[] AS reasons, NULL::bigint[] AS counts,
       NULL::integer[] AS run_of, NULL::bigint[] AS run_dues, NULL::text[] AS kinds,
       NULL::text[] AS overlaps, NULL::job_batch AS jobs, NULL::text AS cancel, NULL::text AS why;

-- claimed_job: a row of claim, of which the first tells when to come again and what lanes are called.
CREATE OR REPLACE VIEW claimed_job AS
SELECT NULL::bigint AS poll_after, NULL::text AS lanes, NULL::bytea AS id, NULL::integer AS lane,
       NULL::text AS tenant, NULL::bigint AS due, NULL::bigint AS created, NULL::bytea AS args,
       NULL::text AS extras, NULL::text AS delivery, NULL::integer AS cost, NULL::text AS schedule,
       NULL::integer AS generation, NULL::integer AS lease, NULL::integer AS attempt,
       NULL::integer AS crashes, NULL::integer AS losses, NULL::boolean AS suspect,
       NULL::bigint AS handout;
