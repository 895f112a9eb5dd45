// Uses the client that was made from the OpenAPI document, as a program in TypeScript would.

import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const [baseUrl = "", token = ""] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });

function found<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

// Nothing but the type has to be given, arguments may be anything by name, and so may metadata.
const smallest: components["schemas"]["Submission"] = { type: "greet" };
const body: components["schemas"]["Submission"] = {
  ...smallest,
  arguments: { name: "Ada" },
  metadata: { source: "test", nested: { list: [1, 2, { deep: true }] } },
  retry: { max_attempts: 3 },
  delay: 3600,
};
const made = found(
  await client.POST("/v1/jobs", { body, params: { header: { "Idempotency-Key": "once" } } }),
);
const again = found(
  await client.POST("/v1/jobs", { body, params: { header: { "Idempotency-Key": "once" } } }),
);
const path = { id: made.id };
const job = found(await client.GET("/v1/jobs/{id}", { params: { path, query: { wait: 0.1 } } }));
const created: string = job.created_at;
const listed = found(
  await client.GET("/v1/jobs", { params: { query: { type: ["greet"], created_after: created } } }),
);
const given = found(await client.GET("/v1/jobs/{id}/input", { params: { path } }));
found(await client.DELETE("/v1/jobs/{id}", { params: { path, query: { reason: "tidy" } } }));

const schedule: components["schemas"]["NewScheduleBody"] = {
  id: "nightly",
  type: "greet",
  cron: "30 2 * * *",
  arguments: { name: "Ada" },
};
found(await client.POST("/v1/schedules", { body: schedule }));
const read = await client.GET("/v1/schedules/{id}", { params: { path: { id: "nightly" } } });
const tag = read.response.headers.get("ETag") ?? "";
const change = { body: { max_runs: 5 }, params: { path: { id: "nightly" } } };
const patched = await client.PATCH("/v1/schedules/{id}", {
  ...change,
  params: { ...change.params, header: { "If-Match": tag } },
});
const refused = await client.PATCH("/v1/schedules/{id}", {
  ...change,
  params: { ...change.params, header: { "If-Match": tag } },
});

console.log(
  JSON.stringify({
    id: made.id,
    same: made.id === again.id,
    status: job.status,
    created: new Date(created).getTime() > 0,
    listed: listed.jobs.map((each) => each.id),
    arguments: given.arguments,
    patched: patched.data?.spec?.max_runs,
    refused: refused.error?.code,
  }),
);
