import { useEffect, useState } from "preact/hooks";
import { patiently, problemOf } from "../api/client";
import { useData } from "../api/data";
import { change, fits, LABELS, MEANINGS, VERBS, type Verb } from "../api/jobs";
import type { Job, JobPage, JobTypes } from "../api/schema";
import { announce } from "../lib/news";
import { href, picked, type Route } from "../lib/route";
import { stay } from "../lib/stay";
import { count, plural } from "../lib/text";
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
const NONE: ReadonlyMap<string, Job> = new Map();

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
  const [chosen, setChosen] = useState<ReadonlyMap<string, Job>>(NONE);
  const [outcomes, setOutcomes] = useState<readonly Outcome[]>([]);
  const where = route.query.toString();
  const isPlain = NAMES.every((name) => !route.query.has(name));
  useEffect(() => setChosen(NONE), [where]);
  const listed = new Map(page.data?.jobs.map((job) => [job.id, job]));
  // What is selected stays so while a live list goes on below it.
  const selected = [...chosen].map(([id, job]) => listed.get(id) ?? job);
  const choose = (ids: ReadonlySet<string>) =>
    setChosen((before) => {
      const known = [...ids].map((id) => [id, listed.get(id) ?? before.get(id)] as const);
      return new Map(known.filter((each): each is readonly [string, Job] => each[1] !== undefined));
    });
  const act = async (jobs: readonly Job[], verb: Verb, reason: string) => {
    const leave = stay();
    const found = await changeAll(jobs, verb, reason).finally(leave);
    setOutcomes(found);
    setChosen(NONE);
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
      <Bulk
        jobs={selected}
        gone={selected.filter(({ id }) => !listed.has(id)).length}
        clear={() => setChosen(NONE)}
        act={act}
      />
      <Outcomes outcomes={outcomes} dismiss={() => setOutcomes([])} />
      <Loaded from={page}>
        {({ jobs, next }) => (
          <>
            <Table
              caption="jobs, newest first"
              rows={jobs}
              keyOf={(job) => job.id}
              columns={jobColumns}
              selection={{ chosen: new Set(chosen.keys()), choose }}
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
  return isAll ? "There are no jobs." : "No jobs match the filter.";
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

interface BulkProps {
  jobs: readonly Job[];
  /** How many of them are not in the list any more. */
  gone: number;
  clear: () => void;
  act: (jobs: readonly Job[], verb: Verb, reason: string) => Promise<void>;
}

function Bulk({ jobs, gone, clear, act }: BulkProps) {
  if (!jobs.length) return null;
  const many = plural(jobs.length, "job");
  return (
    <div class="bulk actions" role="toolbar" aria-label="actions on the selection">
      <b>{many} selected</b>
      {gone > 0 && <span class="dim">{count(gone)} not in the list any more</span>}
      {VERBS.map((verb) => {
        const number = jobs.filter((job) => fits(verb, job.status)).length;
        return (
          <Act
            key={verb}
            label={LABELS[verb]}
            title={`${LABELS[verb]}: ${many}`}
            verb={`${LABELS[verb]}: ${many}`}
            scope="jobs:write"
            danger={verb === "cancel"}
            disabled={number === 0}
            act={(reason) => act(jobs, verb, reason)}
          >
            <p>{MEANINGS[verb]}</p>
            {number < jobs.length && (
              <p class="dim">Applies to {number} of them; the others will be refused.</p>
            )}
            {gone > 0 && <p class="dim">{count(gone)} of them are not in the list any more.</p>}
          </Act>
        );
      })}
      <button type="button" class="quiet" onClick={clear}>
        select none
      </button>
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
