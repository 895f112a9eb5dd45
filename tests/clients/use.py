"""Use the client that was made from the OpenAPI document, as a program in Python would."""

import datetime as dt
import json
import sys

from lamplighter_client import AuthenticatedClient
from lamplighter_client.api.default import (
    job_cancel,
    job_given,
    job_show,
    jobs_list_jobs,
    jobs_submit,
    schedule_change,
    schedule_show,
    schedules_put,
)
from lamplighter_client.models import NewScheduleBody, ScheduleChange, Submission
from lamplighter_client.models.submission_arguments import SubmissionArguments

url, token = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token, raise_on_unexpected_status=True)
arguments = SubmissionArguments.from_dict({"name": "Ada"})
body = Submission(type_="greet", arguments=arguments, delay=3600)
made = jobs_submit.sync(client=client, body=body, idempotency_key="python")
again = jobs_submit.sync(client=client, body=body, idempotency_key="python")
job = job_show.sync(made.id, client=client, wait=0.1)
assert isinstance(job.created_at, dt.datetime)
listed = jobs_list_jobs.sync(client=client, type_=["greet"], created_after=job.created_at)
given = job_given.sync(made.id, client=client)
job_cancel.sync(made.id, client=client, reason="tidy")

schedule = NewScheduleBody.from_dict(
    {"type": "greet", "id": "weekly", "cron": "30 2 * * 1", "arguments": {"name": "Ada"}}
)
schedules_put.sync(client=client, body=schedule)
tag = schedule_show.sync_detailed("weekly", client=client).headers["ETag"]
change = ScheduleChange(max_runs=5)
patched = schedule_change.sync("weekly", client=client, body=change, if_match=tag)
refused = schedule_change.sync("weekly", client=client, body=change, if_match=tag)
print(
    json.dumps(
        {
            "id": made.id,
            "same": made.id == again.id,
            "status": job.status.value,
            "created": job.created_at.tzinfo is not None,
            "listed": [each.id for each in listed.jobs],
            "arguments": given.arguments,
            "patched": patched.spec.max_runs,
            "refused": refused.code,
        }
    )
)
