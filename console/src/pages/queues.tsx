import { useState } from "preact/hooks";
import { ask, place } from "../api/client";
import { useData } from "../api/data";
import type { Queues as Answer, Queue, QueueChange } from "../api/schema";
import { announce } from "../lib/news";
import { href } from "../lib/route";
import { counted } from "../lib/text";
import { duration } from "../lib/time";
import { ActDialog, Opener } from "../parts/act";
import { Held, HoldAct } from "../parts/hold-act";
import { Page } from "../parts/panel";
import { Loaded } from "../parts/problem";
import { type Column, Table } from "../parts/table";
import { Name } from "../parts/text";

const LEVELS: readonly (readonly [name: string, tone: string])[] = [
  ["critical", "bad"],
  ["high", "warn"],
  ["normal", "next"],
  ["low", "still"],
];

/** Queues: how much waits in them, for how long, and how they are served. */
export function Queues() {
  const answer = useData<Answer>("v1/queues", { topic: "queues" });
  const put = async (name: string, body: QueueChange, reason: string) => {
    await ask(place("v1/queues", name), { method: "PUT", query: { reason }, body });
    announce(`the queue ${name} is changed`);
    await answer.refresh();
  };
  return (
    <Page title="Queues">
      <Loaded from={answer}>
        {({ queues }) => (
          <Table
            caption="queues by name"
            rows={queues}
            keyOf={(queue) => queue.name}
            columns={columns(put)}
            empty="There are no queues: nothing has been submitted yet."
          />
        )}
      </Loaded>
    </Page>
  );
}

type Put = (name: string, body: QueueChange, reason: string) => Promise<void>;

function columns(put: Put): readonly Column<Queue>[] {
  return [
    {
      head: "Queue",
      cell: ({ name }) => (
        <a class="title" href={href(["jobs"], { queue: name, status: "pending" })}>
          <Name value={name} most={40} />
        </a>
      ),
    },
    { head: "Due", cell: ({ ready }) => counted(ready), number: true },
    { head: "Later", cell: ({ scheduled }) => counted(scheduled), number: true, wide: true },
    { head: "Waiting by priority", cell: (queue) => <Levels queue={queue} />, wide: true },
    { head: "Oldest due", cell: (queue) => <Oldest queue={queue} /> },
    { head: "Running", cell: ({ running }) => counted(running), number: true },
    { head: "Held", cell: ({ hold }) => <Held note={hold} />, wide: true },
    {
      head: "Longest wait",
      cell: (queue) => <Wait queue={queue} put={put} />,
      wide: true,
    },
    {
      head: "",
      cell: ({ name, held }) => (
        <HoldAct
          what={`the queue ${name}`}
          held={held}
          act={(next, reason) => put(name, { held: next }, reason)}
        />
      ),
    },
  ];
}

function Levels({ queue }: { queue: Queue }) {
  const found = LEVELS.map(([name, tone]) => ({
    name,
    tone,
    number: queue.waiting_by_priority[name] ?? 0,
  })).filter(({ number }) => number > 0);
  const all = found.reduce((sum, { number }) => sum + number, 0);
  if (!all) return <span class="dim">none</span>;
  return (
    <span class="levels">
      <span class="stack" aria-hidden="true">
        {found.map(({ name, tone, number }) => (
          <i key={name} class={tone} style={{ flexGrow: String(number) }} />
        ))}
      </span>
      {found.map(({ name, tone, number }) => (
        <span key={name} class={`key ${tone}`}>
          <i aria-hidden="true" />
          {name} {counted(number)}
        </span>
      ))}
    </span>
  );
}

/** How long the job that waits longest has been due; beyond the longest wait it goes first. */
function Oldest({
  queue: { oldest_due_seconds: oldest, max_wait_seconds: most },
}: {
  queue: Queue;
}) {
  if (oldest === null) return <span class="dim">–</span>;
  return oldest > most ? <b class="warn">{duration(oldest)}</b> : <span>{duration(oldest)}</span>;
}

function Wait({ queue, put }: { queue: Queue; put: Put }) {
  return (
    <span class="set">
      {queue.max_wait_seconds} s
      <Opener
        label="Set"
        scope="operator"
        dialog={(close) => <WaitDialog queue={queue} put={put} onClose={close} />}
      />
    </span>
  );
}

function WaitDialog({
  queue: { name, max_wait_seconds: now },
  put,
  onClose,
}: {
  queue: Queue;
  put: Put;
  onClose: () => void;
}) {
  const [seconds, setSeconds] = useState(String(now));
  return (
    <ActDialog
      label="Set"
      title={`Longest wait in the queue ${name}`}
      act={(reason) => put(name, { max_wait_seconds: Number(seconds) }, reason)}
      onClose={onClose}
    >
      <p>A job that has been due for longer goes first, whatever its priority.</p>
      <label class="field">
        Seconds
        <input
          type="number"
          autofocus
          required
          min={0}
          step="any"
          value={seconds}
          onInput={(event) => setSeconds(event.currentTarget.value)}
        />
      </label>
    </ActDialog>
  );
}
