-- What stands in a job, written once.

-- claim.columns: a claimed job as `verbs/claim.py` reads it, behind what the first row tells.
-- @define claim.columns
NULL::bigint, NULL::text, uuid_send(job.id), job.lane, job.tenant, job.due, job.created, job.args,
job.extras, job.delivery, job.cost, job.schedule, job.generation, job.lease, job.attempt, job.crashes,
job.losses, job.suspect, job.handout
-- @end

-- names_of: what lanes are called, as JSON: their number → queue, level, type.
-- @define names_of(lanes)
(SELECT json_object_agg(lane.id, json_build_array(lane.queue, lane.level, lane.type))::text
 FROM lane
 WHERE lane.id = ANY (@lanes@))
-- @end
