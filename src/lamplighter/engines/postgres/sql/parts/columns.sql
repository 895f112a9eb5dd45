-- What stands in a job, written once.

-- kept: what a job keeps when it ends, whatever it came to;   counts: what counts against it.
-- @define kept(job)
@job@.seq, @job@.id, @job@.lane, @job@.tenant, @job@.due, @job@.created, @job@.args, @job@.extras,
@job@.delivery, @job@.cost, @job@.size, @job@.schedule, @job@.generation, @job@.lease, @job@.nonce,
@job@.worker, @job@.handout, @job@.claimed
-- @end
-- @define counts(job)
@job@.attempt, @job@.crashes, @job@.losses, @job@.suspect
-- @end

-- ended: all columns of a job that has ended.
-- @define ended
seq, id, lane, tenant, due, created, args, extras, delivery, cost, size, schedule, generation, lease, nonce,
worker, handout, claimed, attempt, crashes, losses, suspect, state, cancel, finished, reason, result,
result_note, error, fingerprint
-- @end

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
