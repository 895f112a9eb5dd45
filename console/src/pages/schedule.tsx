import { useState } from "preact/hooks";
import { place } from "../api/client";
import { useData } from "../api/data";
import { backfill, type Key, remove, scheduleLink, setHeld, trigger } from "../api/schedules";
import type { BackfillState, Previews, RunPage, ScheduleShape, ScheduleSpec } from "../api/schema";
import { useMay } from "../api/session";
import { useShortcuts } from "../lib/keys";
import { announce } from "../lib/news";
import { go, href } from "../lib/route";
import { count, plural } from "../lib/text";
import { duration } from "../lib/time";
import { Act, ActDialog, Opener } from "../parts/act";
import { Instant } from "../parts/instant";
import { Json } from "../parts/json";
import { By } from "../parts/note";
import { Occurrences } from "../parts/occurrences";
import { Pager } from "../parts/pager";
import { Facts, Page, Panel } from "../parts/panel";
import { Loaded } from "../parts/problem";
import { runColumns } from "../parts/run-columns";
import { Table } from "../parts/table";
import { Name, Text } from "../parts/text";
import { Ago } from "../parts/time";
import type { PageProps } from ".";
import { EditSchedule } from "./schedule-form";
import { LastRun, NextRun } from "./schedules";

/** One schedule: what it is, what it will do and has done, and what can be done about it. */
export function SchedulePage({ route }: PageProps) {
  const id = route.parts[1] ?? "";
  const tenant = route.query.get("tenant") ?? undefined;
  if (route.query.has("edit")) return <EditSchedule id={id} tenant={tenant} />;
  return <Shown route={route} id={id} tenant={tenant} />;
}

function Shown({ route, id, tenant }: PageProps & Key) {
  const path = place("v1/schedules", id);
  const schedule = useData<ScheduleShape>(path, { query: { tenant } });
  const [after, setAfter] = useState<string>();
  const isReadable = schedule.data?.spec != null;
  const query = { count: 10, after, tenant };
  const ahead = useData<Previews>(isReadable ? `${path}/preview` : null, { query, every: 60_000 });
  const runs = useData<RunPage>(`${path}/runs`, {
    query: { limit: 25, cursor: route.query.get("cursor"), tenant },
  });
  const again = async () => {
    await Promise.all([schedule.refresh(), ahead.refresh(), runs.refresh()]);
  };
  return (
    <Page title={id} actions={schedule.data && <Actions schedule={schedule.data} after={again} />}>
      <p class="crumbs">
        <a href="#/schedules">Schedules</a> / <Name value={id} />
      </p>
      <Loaded from={schedule}>
        {(found) => (
          <>
            <Summary schedule={found} />
            {found.backfill && <Backfilling state={found.backfill} />}
            <div class="columns">
              {found.spec && (
                <Panel
                  title="Next runs"
                  actions={
                    after && (
                      <button type="button" class="quiet" onClick={() => setAfter(undefined)}>
                        from now
                      </button>
                    )
                  }
                >
                  {found.hold && <p class="warn">It is held: none of these is fired.</p>}
                  <Loaded from={ahead}>
                    {({ runs, clocks, shift }) => (
                      <>
                        <Occurrences runs={runs} clocks={clocks} jump={setAfter} />
                        {shift > 0 && (
                          <p class="dim">Each is fired {duration(shift)} later: its jitter.</p>
                        )}
                      </>
                    )}
                  </Loaded>
                </Panel>
              )}
              {found.spec && (
                <Panel title="Arguments">
                  <Json value={found.spec.arguments} />
                </Panel>
              )}
            </div>
            <Panel title="Past runs">
              <Loaded from={runs}>
                {({ runs, next }) => (
                  <>
                    <Table
                      caption="past runs, the latest due first"
                      rows={runs}
                      keyOf={(run) => `${run.due} ${run.kind} ${run.job ?? ""}`}
                      columns={runColumns}
                      empty="It has not been fired yet."
                    />
                    <Pager route={route} next={next} />
                  </>
                )}
              </Loaded>
            </Panel>
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Actions({ schedule, after }: { schedule: ScheduleShape; after: () => Promise<void> }) {
  const { id, hold, spec } = schedule;
  const edit = scheduleLink(schedule, { edit: "1" });
  const mayEdit = useMay()("schedules:write") && spec !== null;
  useShortcuts(mayEdit ? [{ keys: "e", what: "edit", do: () => go(edit) }] : []);
  const run = async (reason: string) => {
    const { state } = await trigger(schedule, reason);
    announce(`the job of ${id} is ${state}`);
    await after();
  };
  const change = async (held: boolean, reason: string) => {
    await setHeld(schedule, held, reason);
    announce(`${id} is ${held ? "held" : "going on"}`);
    await after();
  };
  const away = async (reason: string) => {
    await remove(schedule, reason);
    announce(`${id} is gone`);
    go("#/schedules");
  };
  return (
    <>
      {mayEdit && (
        <a class="button" href={edit}>
          Edit
        </a>
      )}
      <Act
        label="Run now"
        title={`Run the job of ${id} now`}
        hotkey="n"
        scope="schedules:write"
        disabled={!spec}
        act={run}
      >
        <p>It makes a job that is not in the calendar, as the overlap policy allows.</p>
      </Act>
      {hold ? (
        <Act
          label="Unhold"
          title={`Let ${id} go on`}
          hotkey="h"
          scope="schedules:write"
          act={(reason) => change(false, reason)}
        >
          <p>What was missed meanwhile is made up for as its policy says.</p>
        </Act>
      ) : (
        <Act
          label="Hold"
          title={`Hold ${id}`}
          hotkey="h"
          scope="schedules:write"
          act={(reason) => change(true, reason)}
        >
          <p>The schedule does not fire until it is unheld. Jobs that it has created continue.</p>
        </Act>
      )}
      <BackfillAct schedule={schedule} after={after} />
      <Act
        label="Delete"
        title={`Delete ${id}`}
        verb="Delete the schedule"
        danger
        scope="schedules:write"
        act={away}
      >
        <p>
          The schedule and its history are removed permanently. Jobs that it has created continue.
        </p>
      </Act>
    </>
  );
}

interface BackfillProps {
  schedule: ScheduleShape;
  after: () => Promise<void>;
}

function BackfillAct({ schedule, after }: BackfillProps) {
  const { spec, backfill: running } = schedule;
  return (
    <Opener
      label="Backfill"
      hotkey="b"
      scope="schedules:write"
      disabled={!spec || running !== null}
      dialog={(close) => <BackfillDialog schedule={schedule} after={after} onClose={close} />}
    />
  );
}

function BackfillDialog({ schedule, after, onClose }: BackfillProps & { onClose: () => void }) {
  const { id } = schedule;
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const [atOnce, setAtOnce] = useState("1");
  const begin = async (reason: string) => {
    const past = { from: from.trim(), to: to.trim(), at_once: Number(atOnce) };
    await backfill(schedule, past, reason);
    announce(`the backfill of ${id} has begun`);
    await after();
  };
  return (
    <ActDialog label="Backfill" title={`Backfill ${id}`} act={begin} onClose={onClose}>
      <p>Occurrences of the past that have not been run get their job, a few at a time.</p>
      <label class="field">
        After this instant
        <input
          value={from}
          autofocus
          required
          placeholder="2030-01-01T00:00:00Z"
          onInput={(event) => setFrom(event.currentTarget.value)}
        />
      </label>
      <label class="field">
        Up to this instant
        <input
          value={to}
          required
          placeholder="2030-01-31T00:00:00Z"
          onInput={(event) => setTo(event.currentTarget.value)}
        />
      </label>
      <label class="field">
        Unfinished jobs at once
        <input
          type="number"
          min={1}
          required
          value={atOnce}
          onInput={(event) => setAtOnce(event.currentTarget.value)}
        />
      </label>
    </ActDialog>
  );
}

function Backfilling({ state }: { state: BackfillState }) {
  const [from, to, at] = [state.from, state.to, state.at].map(Date.parse) as [
    number,
    number,
    number,
  ];
  return (
    <Panel title="Backfill">
      <progress
        max={Math.max(to - from, 1)}
        value={Math.max(at - from, 0)}
        aria-label="progress of the backfill"
      />
      <p class="dim">
        {plural(state.made, "job")} made, at most {count(state.at_once)} unfinished at once. It goes
        from <Instant at={state.from} /> to <Instant at={state.to} />, and has come to{" "}
        <Instant at={state.at} />.
      </p>
    </Panel>
  );
}

function Summary({ schedule }: { schedule: ScheduleShape }) {
  const { spec, hold, unreadable } = schedule;
  return (
    <section class="panel" aria-label="summary">
      {spec && (
        <p class="words">
          <Text value={spec.description} />
        </p>
      )}
      {unreadable && (
        <p class="bad">
          <Text value={unreadable} />
        </p>
      )}
      <Facts
        facts={[
          ["Next run", <NextRun schedule={schedule} />],
          ["Last run", <LastRun schedule={schedule} />],
          ["Held", hold && <By note={hold} />],
          ["Type", <JobsLink name="type" value={schedule.type} />],
          ["Tenant", <JobsLink name="tenant" value={schedule.tenant} />],
          ["Fired", `${count(schedule.fired)}, ${count(schedule.skipped)} skipped`],
          ...(spec ? policyFacts(spec) : []),
          ["Created", <Ago at={schedule.created_at} />],
          ["Changed", <Ago at={schedule.changed_at} />],
          ["Version", count(schedule.version)],
        ]}
      />
    </section>
  );
}

function policyFacts(spec: ScheduleSpec) {
  return [
    ["Queue", <Name value={spec.queue} />],
    ["Priority", spec.priority],
    ["Overlap", spec.overlap.replace("_", " ")],
    ["Catch up", `${spec.catch_up}, for ${duration(spec.window)}`],
    ["Jitter", spec.jitter ? `${duration(spec.shift)} of ${duration(spec.jitter)}` : null],
    ["Starts", spec.start && <Instant at={spec.start} />],
    ["Ends", spec.end && <Instant at={spec.end} />],
    ["Most runs", spec.max_runs],
    ["Held after", spec.hold_after && `${spec.hold_after} failures in a row`],
    ["Timeout", spec.timeout && duration(spec.timeout)],
    ["Tags", spec.tags.length ? <Text value={spec.tags.join(", ")} /> : null],
  ] as const;
}

function JobsLink({ name, value }: { name: "type" | "tenant"; value: string }) {
  return (
    <a href={href(["jobs"], { [name]: value })}>
      <Name value={value} />
    </a>
  );
}
