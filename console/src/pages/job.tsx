import { useEffect, useRef, useState } from "preact/hooks";
import { place } from "../api/client";
import { type Data, useData } from "../api/data";
import { change, erase, fits, isOver, offer, type Verb } from "../api/jobs";
import { useLog } from "../api/logs";
import { type Key, scheduleLink } from "../api/schedules";
import type { Attempts, Explanation, Job, JobInput } from "../api/schema";
import { useMay } from "../api/session";
import { announce } from "../lib/news";
import { href } from "../lib/route";
import { duration } from "../lib/time";
import { Act } from "../parts/act";
import { AttemptList, Timeline } from "../parts/attempts";
import { Json } from "../parts/json";
import { LogView } from "../parts/log";
import { By } from "../parts/note";
import { Facts, Page, Panel } from "../parts/panel";
import { Loaded, PageProblem } from "../parts/problem";
import { Status } from "../parts/status";
import { Block, Name, Text } from "../parts/text";
import { Ago, Took } from "../parts/time";
import type { PageProps } from ".";

/** One job: what it is, what happened to it, and what can be done about it. */
export function JobPage({ route }: PageProps) {
  const id = route.parts[1] ?? "";
  const [erased, setErased] = useState<string>();
  return erased === id ? <Erased id={id} /> : <Kept id={id} onErased={() => setErased(id)} />;
}

function Erased({ id }: { id: string }) {
  const told = useRef<HTMLParagraphElement>(null);
  // The button that had the focus is gone with the job.
  useEffect(() => told.current?.focus(), []);
  return (
    <Page title="Job erased">
      <p class="crumbs">
        <a href="#/jobs">Jobs</a>
      </p>
      <p role="status" tabIndex={-1} ref={told}>
        The job <Name value={id} /> was erased. The audit log records its id, who erased it, when
        and why; nothing else is kept.
      </p>
    </Page>
  );
}

/** Reads a job. What the service no longer has is not shown any longer. */
function useJob(id: string): Data<Job> {
  const job = useData<Job>(place("v1/jobs", id), { topic: `job:${id}` });
  return job.problem?.isMissing ? { ...job, data: undefined } : job;
}

function Kept({ id, onErased }: { id: string; onErased: () => void }) {
  const path = place("v1/jobs", id);
  const job = useJob(id);
  const over = job.data !== undefined && isOver(job.data.status);
  const isRunning = runs(job.data?.status ?? "");
  const isStarted = isRunning && job.data?.status !== "claimed";
  const isWaiting = job.data !== undefined && !over && !isStarted;
  const may = useMay();
  const input = useData<JobInput>(`${path}/input`, { every: isRunning ? 2_000 : 0 });
  const attempts = useData<Attempts>(may("operator") ? `${path}/attempts` : null, {
    every: isRunning ? 5_000 : 0,
  });
  const why = useData<Explanation>(may("operator") && isWaiting ? `${path}/why` : null);
  const log = useLog(job.data ? id : null, job.data?.status, isRunning);
  useAgain(job.data, [input, attempts, why]);
  return (
    <Page
      title={job.data?.type ?? "Job"}
      actions={job.data && <Actions job={job.data} after={job.refresh} onErased={onErased} />}
    >
      <p class="crumbs">
        <a href="#/jobs">Jobs</a> / <Name value={id} />
      </p>
      <Loaded from={job}>
        {(job) => (
          <>
            <Summary job={job} input={input.data} />
            {why.data && isWaiting && <Why why={why.data} />}
            <Panel title="Attempts">
              {!may("operator") && (
                <p class="dim">Attempts are shown to those with the scope operator.</p>
              )}
              <Timeline job={job} attempts={attempts.data?.attempts ?? []} />
              {attempts.data && <AttemptList job={job} attempts={attempts.data.attempts} />}
              {attempts.data?.attempts.length === 0 && <p class="dim">{neverTried(job)}</p>}
              {attempts.problem && <PageProblem problem={attempts.problem} />}
            </Panel>
            <Failure job={job} />
            <div class="columns">
              <Panel title="Arguments">
                <Loaded from={input}>{(given) => <Json value={given.arguments} />}</Loaded>
              </Panel>
              <Panel title="Result">
                <Result job={job} />
              </Panel>
            </div>
            <Panel title="Log">
              <LogView log={log} growing={!over} />
            </Panel>
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** Tells whether somebody has it in hand. */
function runs(status: string): boolean {
  return ["claimed", "running", "cancelling"].includes(status);
}

/** Asks again for what depends on a job, when the job has changed. */
function useAgain(job: Job | undefined, others: readonly Data<unknown>[]): void {
  const seen = job && [job.status, job.next_run, job.started_at, job.finished_at].join(" ");
  useEffect(() => {
    if (seen) for (const other of others) void other.refresh();
  }, [seen]);
}

interface ActionsProps {
  job: Job;
  after: () => Promise<void>;
  onErased: () => void;
}

function Actions({ job, after, onErased }: ActionsProps) {
  const act = async (verb: Verb, label: string, reason: string) => {
    const changed = await change(job.id, verb, reason);
    announce(`${label}: the job is ${changed.status}`);
    await after();
  };
  const keys: readonly (readonly [Verb, string])[] = [
    ["retry", "n"],
    ["replay", "r"],
    ["unhold", "h"],
    ["hold", "h"],
    ["cancel", "c"],
  ];
  return (
    <>
      {keys
        .filter(([verb]) => fits(verb, job.status))
        .map(([verb, hotkey]) => {
          const { label, meaning } = offer(verb, job.status);
          return (
            <Act
              key={verb}
              label={label}
              title={`${label}: ${job.id}`}
              verb={verb === "cancel" ? "Cancel the job" : label}
              hint={meaning}
              hotkey={hotkey}
              scope="jobs:write"
              danger={verb === "cancel"}
              primary={verb === "retry" && job.status === "dead"}
              act={(reason) => act(verb, label, reason)}
            >
              <p>{meaning}</p>
            </Act>
          );
        })}
      <Erase job={job} onErased={onErased} />
    </>
  );
}

/** Few may erase: others are not offered it. */
function Erase({ job, onErased }: Omit<ActionsProps, "after">) {
  const may = useMay();
  if (!isOver(job.status) || !may("jobs:erase")) return null;
  const act = async (reason: string) => {
    await erase(job.id, reason);
    announce("Job erased");
    onErased();
  };
  return (
    <Act
      label="Erase…"
      title={`Erase ${job.id}`}
      verb="Erase the job"
      danger
      scope="jobs:erase"
      kept="kept in the audit log; no personal data"
      act={act}
    >
      <p>
        The job is removed permanently, with its arguments, result, error, attempts, logs and
        idempotency key. This cannot be undone.
      </p>
      <p class="dim">The audit log keeps only the id of the job, who erased it, when and why.</p>
    </Act>
  );
}

function Summary({ job, input }: { job: Job; input: JobInput | undefined }) {
  const link = (name: "type" | "queue" | "tenant") => (
    <a href={href(["jobs"], { [name]: job[name] })}>
      <Name value={job[name]} />
    </a>
  );
  const took = job.started_at && (job.finished_at || runs(job.status));
  return (
    <section class="panel" aria-label="summary">
      <Facts
        facts={[
          ["Status", <Status status={job.status} />],
          ["Type", link("type")],
          ["Queue", link("queue")],
          ["Tenant", link("tenant")],
          ["Priority", input?.priority],
          ["Created", <Ago at={job.created_at} />],
          ["Due", job.next_run && <Ago at={job.next_run} />],
          ["Started", job.started_at && <Ago at={job.started_at} />],
          ["Finished", job.finished_at && <Ago at={job.finished_at} />],
          [
            job.finished_at ? "Took" : "Runs for",
            took && <Took from={job.started_at ?? ""} to={job.finished_at} />,
          ],
          ["Timeout", input?.timeout && duration(input.timeout)],
          ["Retry", input?.retry && <Retry policy={input.retry} />],
          ["Delivery", input?.delivery === "at_most_once" ? "at most once" : null],
          ["Schedule", input?.schedule && <ScheduleLink id={input.schedule} tenant={job.tenant} />],
          ["Tags", input?.tags.length ? <Tags tags={input.tags} /> : null],
          ["Reason", job.reason && <Text value={job.reason} />],
          ["Held", input?.hold && <By note={input.hold} />],
          ["Cancelled", input?.cancel && <By note={input.cancel} />],
        ]}
      />
      {input?.progress && <Progress progress={input.progress} />}
      {input && Object.keys(input.metadata).length > 0 && (
        <details>
          <summary>metadata</summary>
          <Json value={input.metadata} />
        </details>
      )}
    </section>
  );
}

function Retry({ policy }: { policy: NonNullable<JobInput["retry"]> }) {
  const times = policy.max_attempts === 1 ? "never" : `up to ${policy.max_attempts} attempts`;
  const pause =
    policy.fixed != null
      ? `, every ${duration(policy.fixed)}`
      : policy.delays?.length
        ? `, after ${policy.delays.map(duration).join(", ")}`
        : "";
  return <span>{times + pause}</span>;
}

function ScheduleLink({ id, tenant }: Key) {
  return (
    <a href={scheduleLink({ id, tenant })}>
      <Name value={id} />
    </a>
  );
}

function Tags({ tags }: { tags: readonly string[] }) {
  return (
    <>
      {tags.map((tag) => (
        <a key={tag} class="tag" href={href(["jobs"], { tag })}>
          <Text value={tag} />
        </a>
      ))}
    </>
  );
}

function Progress({ progress }: { progress: NonNullable<JobInput["progress"]> }) {
  const { done, total, note } = progress;
  return (
    <div class="progress">
      {total ? (
        <progress max={total} value={Math.min(done, total)} aria-label="progress of the job" />
      ) : null}
      <p class="dim">
        {total ? `${done} of ${total}` : `${done} done`}
        {note && (
          <>
            {" · "}
            <Text value={note} />
          </>
        )}
      </p>
    </div>
  );
}

function Why({ why }: { why: Explanation }) {
  if (!why.reasons.length) return null;
  return (
    <Panel title="Why it is not running">
      <ol class="why">
        {why.reasons.map((reason, at) => (
          <li key={at}>
            <Text value={reason.text} />
            {reason.note && (
              <span class="dim">
                {" "}
                · <By note={reason.note} />
              </span>
            )}
          </li>
        ))}
      </ol>
    </Panel>
  );
}

function neverTried({ status, started_at }: Job): string {
  if (started_at) return "None is kept.";
  return isOver(status) ? "It was never started." : "None yet.";
}

function Failure({ job }: { job: Job }) {
  if (!job.error) return null;
  return (
    <Panel title="Error">
      <p class="bad">
        <Name value={job.error.type} most={200} />
      </p>
      <Block value={job.error.message} />
    </Panel>
  );
}

function Result({ job }: { job: Job }) {
  if (job.result_note) return <Text value={job.result_note} />;
  if (job.status === "succeeded") return <Json value={job.result} />;
  return <p class="dim">{NO_RESULT[job.status] ?? "None yet: it has not run to its end."}</p>;
}

/** Why a job that has not succeeded has no result; others wait for their first attempt. */
const NO_RESULT: Record<string, string> = {
  claimed: "None yet: a worker has taken it, but not started it.",
  running: "None yet: it is running.",
  cancelling: "None yet: it is being cancelled.",
  retrying: "None yet: it has failed, and will be retried.",
  dead: "None: it failed for good.",
  cancelled: "None: it was cancelled.",
  expired: "None: it expired, because its start deadline passed before it began.",
};
