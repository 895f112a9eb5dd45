import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ask, place, problemOf, type Refused } from "../api/client";
import { useData } from "../api/data";
import { create, type Key, patch, scheduleLink } from "../api/schedules";
import type { JobTypes, PreviewBody, ScheduleChange, ScheduleShape } from "../api/schema";
import { useMay, useMe } from "../api/session";
import {
  argumentsOf,
  bodyOf,
  changesOf,
  type Draft,
  differences,
  draftOf,
  emptyDraft,
  isTouched,
  newOf,
  rebased,
} from "../lib/draft";
import { announce } from "../lib/news";
import { go } from "../lib/route";
import { stay } from "../lib/stay";
import { Conflict } from "../parts/conflict";
import { ForesightPanel } from "../parts/foresight";
import { Page } from "../parts/panel";
import { Loaded, Problem } from "../parts/problem";
import { ScheduleFields } from "../parts/schedule-fields";
import { Name } from "../parts/text";
import type { PageProps } from ".";

/** The form for a schedule that is not there yet. */
export function NewSchedule({ route }: PageProps) {
  const { tenant: own } = useMe();
  const [first] = useState(() => emptyDraft({ type: route.query.get("type") ?? "" }));
  const [draft, setDraft] = useState(first);
  const save = async () => {
    const made = await create(newOf(draft), own);
    announce(`the schedule ${made.id} is made`);
    go(scheduleLink(made));
  };
  return (
    <Page title="New schedule">
      <Crumbs />
      <Form
        before={first}
        draft={draft}
        setDraft={setDraft}
        body={whole(draft)}
        save={save}
        back="#/schedules"
      />
    </Page>
  );
}

/** The form for a schedule that is there. */
export function EditSchedule({ id, tenant }: Key) {
  const query = { tenant };
  const stored = useData<ScheduleShape>(place("v1/schedules", id), { query, every: 0 });
  return (
    <Page title={`Edit ${id}`}>
      <Crumbs of={{ id, tenant }} />
      <Loaded from={stored}>{(schedule) => <Editor opened={schedule} />}</Loaded>
    </Page>
  );
}

function Editor({ opened }: { opened: ScheduleShape }) {
  const first = draftOf(opened);
  if (!first) return <p class="bad">Another version has written it; it cannot be edited here.</p>;
  return <ReadableEditor opened={opened} first={first} />;
}

interface Base {
  version: number;
  draft: Draft;
}

function ReadableEditor({ opened, first }: { opened: ScheduleShape; first: Draft }) {
  const [base, setBase] = useState<Base>({ version: opened.version, draft: first });
  const [draft, setDraft] = useState(first);
  const [theirs, setTheirs] = useState<Base>();
  const save = async () => {
    const changes = changesOf(base.draft, draft);
    const meanwhile = Object.keys(changes).length
      ? await patched(opened, base, changes)
      : undefined;
    if (meanwhile) setTheirs(meanwhile);
    else go(scheduleLink(opened));
  };
  const settle = (found: Base, next: Draft) => {
    setBase(found);
    setDraft(next);
    setTheirs(undefined);
  };
  return (
    <>
      {theirs && (
        <Conflict
          differences={differences(base.draft, draft, theirs.draft)}
          keep={() => settle(theirs, rebased(base.draft, draft, theirs.draft))}
          drop={() => settle(theirs, theirs.draft)}
        />
      )}
      <Form
        before={base.draft}
        draft={draft}
        setDraft={setDraft}
        body={changed(base.draft, draft)}
        save={save}
        back={scheduleLink(opened)}
        isStored
      />
    </>
  );
}

/** Stores the changes, unless somebody else has made others meanwhile: then it gives those. */
async function patched(key: Key, base: Base, changes: ScheduleChange): Promise<Base | undefined> {
  try {
    await patch(key, base.version, changes);
  } catch (error) {
    const now = problemOf(error).status === 409 ? await current(key) : undefined;
    if (!now || now.version === base.version) throw error;
    // A hold is also another version, but nothing of what is written here.
    if (differences(base.draft, base.draft, now.draft).length) return now;
    await patch(key, now.version, changes);
  }
  announce(`the schedule ${key.id} is changed`);
  return undefined;
}

/** Gives a schedule as it is now; undefined if it cannot be read. */
async function current({ id, tenant }: Key): Promise<Base | undefined> {
  const now = await ask<ScheduleShape>(place("v1/schedules", id), { query: { tenant } });
  const draft = draftOf(now);
  return draft ? { version: now.version, draft } : undefined;
}

/** What is looked at while one writes: a job only when its arguments can be read. */
function whole(draft: Draft): PreviewBody | null {
  if (!draft.kind || !draft[draft.kind].trim()) return null;
  const { type, arguments: given, ...times } = bodyOf(draft);
  return type && typeof argumentsOf(draft) !== "string"
    ? { ...times, type: String(type), arguments: given as Record<string, unknown> }
    : times;
}

/** The same for a stored one, whose secrets are not known here: its job only if it is another. */
function changed(before: Draft, draft: Draft): PreviewBody | null {
  const body = whole(draft);
  if (!body || before.type !== draft.type || before.arguments !== draft.arguments) return body;
  const { type: _type, arguments: _arguments, ...times } = body;
  return times;
}

const COMBINED =
  "Its calendar is combined of several. It stays as it is, unless another kind is chosen.";

interface FormProps {
  /** What was there before anything was written. */
  before: Draft;
  draft: Draft;
  setDraft: (change: (before: Draft) => Draft) => void;
  /** What is to be foretold; null: nothing can be. */
  body: PreviewBody | null;
  /** Stores it and leaves. What it throws is shown. */
  save: () => Promise<void>;
  back: string;
  isStored?: boolean;
}

function Form({ before, draft, setDraft, body, save, back, isStored = false }: FormProps) {
  const may = useMay();
  const types = useData<JobTypes>(may("jobs:read") ? "v1/types" : null, { every: 0 });
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Refused>();
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector("input")?.focus(), []);
  const touched = isTouched(before, draft);
  // Before anything is seen: somebody may reload at once.
  useLayoutEffect(() => (touched ? stay() : undefined), [touched]);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      await save();
    } catch (error) {
      setProblem(problemOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <div class="columns writing">
      <form class="panel schedule-form" ref={form} onSubmit={submit} aria-label="schedule">
        <ScheduleFields
          draft={draft}
          change={(changes) => setDraft((before) => ({ ...before, ...changes }))}
          types={types.data?.types ?? []}
          isStored={isStored}
        />
        {problem && <Problem problem={problem} />}
        <footer class="actions">
          <button
            type="submit"
            class="primary"
            disabled={busy || typeof argumentsOf(draft) === "string" || !may("schedules:write")}
          >
            {isStored ? "Save" : "Create"}
          </button>
          <a href={back}>Leave it</a>
        </footer>
      </form>
      <ForesightPanel body={body} empty={draft.kind === "" ? COMBINED : "Say when, and see."} />
    </div>
  );
}

function Crumbs({ of }: { of?: Key }) {
  return (
    <p class="crumbs">
      <a href="#/schedules">Schedules</a>
      {of && (
        <>
          {" / "}
          <a href={scheduleLink(of)}>
            <Name value={of.id} />
          </a>
        </>
      )}
    </p>
  );
}
