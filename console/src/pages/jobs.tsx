import { useEffect, useState } from "preact/hooks";
import { patiently, problemOf } from "../api/client";
import { useData } from "../api/data";
import { change, fits, LABELS, MEANINGS, VERBS, type Verb } from "../api/jobs";
import type { Job, JobPage, JobTypes } from "../api/schema";
import { announce } from "../lib/news";
import { href, picked, type Route } from "../lib/route";
import { plural } from "../lib/text";
import { Act } from "../parts/act";
import { FilterBar } from "../parts/filters";
import { jobColumns } from "../parts/job-columns";
import { Page } from "../parts/panel";
import { Loaded } from "../parts/problem";
import { STATUSES } from "../parts/status";
import { Table } from "../parts/table";
import { Name, Text } from "../parts/text";
import type { PageProps } from ".";

const NAMES = ["status", "type", "queue", "tenant", "tag", "fingerprint"] as const;
const AT_ONCE = 6;

/** What became of one job that something was done to. */
interface Outcome {
  id: string;
  good: boolean;
  text: string;
}

/** All jobs, newest first, by filter. */
export function Jobs({ route }: PageProps) {
  const query = { ...picked(route, NAMES), limit: 50, cursor: route.query.get("cursor") };
  const page = useData<JobPage>("v1/jobs", { query, signal: "overview" });
  const types = useData<JobTypes>("v1/types", { every: 0 });
  const [chosen, choose] = useState<ReadonlySet<string>>(new Set());
  const [outcomes, setOutcomes] = useState<readonly Outcome[]>([]);
  const where = route.query.toString();
  const isPlain = NAMES.every((name) => !route.query.has(name));
  useEffect(() => choose(new Set()), [where]);
  const jobs = page.data?.jobs ?? [];
  const selected = jobs.filter((job) => chosen.has(job.id));
  const act = async (verb: Verb, reason: string) => {
    const found = await changeAll(selected, verb, reason);
    setOutcomes(found);
    choose(new Set());
    const bad = found.filter((each) => !each.good).length;
    announce(
      `${LABELS[verb]}: ${plural(found.length - bad, "job")} done${bad ? `, ${bad} refused` : ""}`,
      bad ? "bad" : "good",
    );
    await page.refresh();
  };
  return (
    <Page title="Jobs">
      <FilterBar route={route} filters={filters(types.data)} />
      <Bulk jobs={selected} act={act} />
      <Outcomes outcomes={outcomes} dismiss={() => setOutcomes([])} />
      <Loaded from={page}>
        {({ jobs, next }) => (
          <>
            <Table
              caption="jobs, newest first"
              rows={jobs}
              keyOf={(job) => job.id}
              columns={jobColumns}
              selection={{ chosen, choose }}
              empty={emptiness(next, isPlain && !route.query.has("cursor"))}
            />
            <Pager route={route} next={next} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** Says why no row is there. */
function emptiness(next: string | null, isAll: boolean): string {
  if (next !== null) return "None on this page; the search goes on with the next.";
  return isAll ? "There are no jobs." : "No job fits.";
}

function filters(types: JobTypes | undefined) {
  const known = types?.types ?? [];
  const names = [...new Set(known.map(({ name }) => name))].sort();
  const queues = [...new Set(known.map(({ queue }) => queue))].sort();
  return [
    { name: "status", label: "Status", options: ["pending", ...STATUSES] },
    { name: "type", label: "Type", offers: names },
    { name: "queue", label: "Queue", offers: queues },
    { name: "tenant", label: "Tenant" },
    { name: "tag", label: "Tag" },
  ];
}

/** Does it to all, some at a time; each has an outcome of its own. */
async function changeAll(jobs: readonly Job[], verb: Verb, reason: string): Promise<Outcome[]> {
  const left = [...jobs];
  const found: Outcome[] = [];
  const work = async () => {
    for (let job = left.shift(); job; job = left.shift()) {
      const id = job.id;
      try {
        const changed = await patiently(() => change(id, verb, reason));
        found.push({ id, good: true, text: changed.status });
      } catch (error) {
        found.push({ id, good: false, text: problemOf(error).detail });
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return found;
}

function Bulk({
  jobs,
  act,
}: {
  jobs: readonly Job[];
  act: (verb: Verb, reason: string) => Promise<void>;
}) {
  if (!jobs.length) return null;
  return (
    <div class="bulk actions" role="toolbar" aria-label="actions on the selection">
      <b>{plural(jobs.length, "job")} selected</b>
      {VERBS.map((verb) => {
        const number = jobs.filter((job) => fits(verb, job.status)).length;
        return (
          <Act
            key={verb}
            label={LABELS[verb]}
            title={`${LABELS[verb]}: ${plural(jobs.length, "job")}`}
            verb={`${LABELS[verb]}: ${plural(jobs.length, "job")}`}
            scope="jobs:write"
            danger={verb === "cancel"}
            disabled={number === 0}
            act={(reason) => act(verb, reason)}
          >
            <p>{MEANINGS[verb]}</p>
            {number < jobs.length && (
              <p class="dim">It fits {number} of them; the others will be refused.</p>
            )}
          </Act>
        );
      })}
    </div>
  );
}

function Outcomes({ outcomes, dismiss }: { outcomes: readonly Outcome[]; dismiss: () => void }) {
  if (!outcomes.length) return null;
  return (
    <section class="outcomes" aria-label="what became of the selection">
      <ul>
        {outcomes.map(({ id, good, text }) => (
          <li key={id} class={good ? "good" : "bad"}>
            <a href={href(["jobs", id])}>
              <Name value={id} />
            </a>{" "}
            <Text value={text} />
          </li>
        ))}
      </ul>
      <button type="button" class="quiet" onClick={dismiss}>
        dismiss
      </button>
    </section>
  );
}

function Pager({ route, next }: { route: Route; next: string | null }) {
  const chosen = picked(route, NAMES);
  const begun = route.query.has("cursor");
  if (!begun && next === null) return null;
  return (
    <nav class="pager" aria-label="pages of the list">
      {begun && <a href={href(["jobs"], chosen)}>newest</a>}
      {next !== null && <a href={href(["jobs"], { ...chosen, cursor: next })}>older</a>}
    </nav>
  );
}
