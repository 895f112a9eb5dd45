import type { ComponentChildren } from "preact";
import type { JobType } from "../api/schema";
import { argumentsOf, type Draft, KINDS, type Kind } from "../lib/draft";
import { Json } from "./json";
import { Text } from "./text";

const KIND_NAMES: Record<Kind, string> = {
  cron: "Cron expression",
  every: "Every so many seconds",
  rrule: "iCalendar rule",
  at: "Once",
};
const INSTANT = "2030-01-31T12:00:00+01:00";
const HIDDEN = "•••";

export interface FieldsProps {
  draft: Draft;
  change: (changes: Partial<Draft>) => void;
  types: readonly JobType[];
  /** Whether it is stored already: then it keeps its tenant and id. */
  isStored: boolean;
}

/** Everything that can be said about a schedule. */
export function ScheduleFields(props: FieldsProps) {
  return (
    <>
      <JobFields {...props} />
      <TimeFields {...props} />
      <PolicyFields {...props} />
      <MoreFields {...props} />
    </>
  );
}

function JobFields({ draft, change, types, isStored }: FieldsProps) {
  const names = [...new Set(types.map(({ name }) => name))].sort();
  const schema = types.find(({ name }) => name === draft.type.trim())?.schema;
  const given = argumentsOf(draft);
  return (
    <Group title="What runs">
      {!isStored && (
        <TextField {...{ draft, change }} name="id" label="Id" placeholder="one is drawn" />
      )}
      <TextField {...{ draft, change }} name="type" label="Job type" offers={names} required />
      <label class="field whole">
        Arguments, as JSON
        <textarea
          name="arguments"
          rows={Math.min(12, Math.max(3, draft.arguments.split("\n").length + 1))}
          spellcheck={false}
          value={draft.arguments}
          aria-invalid={typeof given === "string"}
          onInput={(event) => change({ arguments: event.currentTarget.value })}
        />
      </label>
      {typeof given === "string" && (
        <p class="bad whole" role="status">
          <Text value={given} />
        </p>
      )}
      {draft.arguments.includes(HIDDEN) && (
        <p class="dim whole">{HIDDEN} stands for a secret; where it is left, the secret stays.</p>
      )}
      {schema && (
        <details class="whole">
          <summary>what this type takes</summary>
          <Json value={schema} />
        </details>
      )}
    </Group>
  );
}

function TimeFields({ draft, change }: FieldsProps) {
  const hasClocks = draft.kind === "cron" || draft.kind === "rrule";
  return (
    <Group title="When">
      <label class="field">
        Kind
        <select
          name="kind"
          value={draft.kind}
          onChange={(event) => change({ kind: event.currentTarget.value as Kind })}
        >
          {draft.kind === "" && <option value="">combined, as it is</option>}
          {KINDS.map((kind) => (
            <option key={kind} value={kind}>
              {KIND_NAMES[kind]}
            </option>
          ))}
        </select>
      </label>
      {draft.kind !== "" && <When draft={draft} change={change} kind={draft.kind} />}
      {hasClocks && (
        <>
          <TextField
            {...{ draft, change }}
            name="timezone"
            label="Time zone"
            placeholder="UTC"
            offers={ZONES}
          />
          <Choice
            {...{ draft, change }}
            name="gap"
            label="Times that the clocks skip"
            usual="when the gap ends"
            options={{ next_valid: "when the gap ends", skip: "do not happen" }}
          />
          <Choice
            {...{ draft, change }}
            name="twice"
            label="Times that they show twice"
            usual="the first time"
            options={{ first: "the first time", both: "both times" }}
          />
        </>
      )}
      <TextField
        {...{ draft, change }}
        name="start"
        label={draft.kind === "rrule" ? "Start, from which the rule counts" : "Not before"}
        placeholder={INSTANT}
        required={draft.kind === "rrule"}
      />
      <TextField {...{ draft, change }} name="end" label="Not after" placeholder={INSTANT} />
      <NumberField
        {...{ draft, change }}
        name="max_runs"
        label="Most runs"
        placeholder="no limit"
      />
    </Group>
  );
}

const WHENS: Record<Kind, readonly [label: string, example: string]> = {
  cron: ["Expression", "30 2 * * *"],
  every: ["Seconds between runs", "900"],
  rrule: ["Rule", "FREQ=MONTHLY;BYDAY=-1FR"],
  at: ["Instant", INSTANT],
};

function When({ draft, change, kind }: Pick<FieldsProps, "draft" | "change"> & { kind: Kind }) {
  const [label, placeholder] = WHENS[kind];
  const Field = kind === "every" ? NumberField : TextField;
  return <Field {...{ draft, change, label, placeholder }} name={kind} required />;
}

function PolicyFields({ draft, change }: FieldsProps) {
  return (
    <Group title="If things go wrong">
      <Choice
        {...{ draft, change }}
        name="overlap"
        label="While the run before has not ended"
        usual="skip the next"
        options={{
          skip: "skip the next",
          allow: "run both",
          queue_one: "let one wait",
          queue_all: "let all wait",
          cancel_running: "cancel the one that runs",
        }}
      />
      <Choice
        {...{ draft, change }}
        name="catch_up"
        label="After an outage, make up for"
        usual="the latest"
        options={{ latest: "the latest", all: "all", none: "none" }}
      />
      <NumberField
        {...{ draft, change }}
        name="window"
        label="But not after seconds"
        placeholder="3600"
      />
      <NumberField
        {...{ draft, change }}
        name="hold_after"
        label="Hold after failures in a row"
        placeholder="never"
      />
      <NumberField {...{ draft, change }} name="jitter" label="Jitter, seconds" placeholder="0" />
    </Group>
  );
}

function MoreFields({ draft, change, isStored }: FieldsProps) {
  return (
    <details class="more">
      <summary>more about its jobs and its history</summary>
      <Group title="Jobs and history">
        <TextField {...{ draft, change }} name="queue" label="Queue" placeholder="of the type" />
        <Choice
          {...{ draft, change }}
          name="priority"
          label="Priority"
          usual="of the type"
          options={{ critical: "critical", high: "high", normal: "normal", low: "low" }}
        />
        {!isStored && (
          <TextField {...{ draft, change }} name="tenant" label="Tenant" placeholder="default" />
        )}
        <NumberField
          {...{ draft, change }}
          name="timeout"
          label="Timeout, seconds"
          placeholder="of the type"
        />
        <TextField {...{ draft, change }} name="tags" label="Tags" placeholder="eu, nightly" />
        <NumberField
          {...{ draft, change }}
          name="keep_succeeded"
          label="Runs remembered that succeeded"
          placeholder="100"
        />
        <NumberField
          {...{ draft, change }}
          name="keep_failed"
          label="Runs remembered that failed"
          placeholder="100"
        />
      </Group>
    </details>
  );
}

const ZONES: readonly string[] = ["UTC", ...Intl.supportedValuesOf("timeZone")];

function Group({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <fieldset>
      <legend>{title}</legend>
      {children}
    </fieldset>
  );
}

interface FieldProps extends Pick<FieldsProps, "draft" | "change"> {
  name: keyof Draft;
  label: string;
  placeholder?: string;
  required?: boolean;
  /** Offered while one types. */
  offers?: readonly string[];
}

function TextField({ draft, change, name, label, offers, ...rest }: FieldProps) {
  return (
    <label class="field">
      {label}
      <input
        {...rest}
        name={name}
        value={draft[name]}
        list={offers && `choices-${name}`}
        autoComplete="off"
        spellcheck={false}
        onInput={(event) => change({ [name]: event.currentTarget.value })}
      />
      {offers && (
        <datalist id={`choices-${name}`}>
          {offers.map((offer) => (
            <option key={offer} value={offer} />
          ))}
        </datalist>
      )}
    </label>
  );
}

function NumberField({ draft, change, name, label, ...rest }: FieldProps) {
  return (
    <label class="field">
      {label}
      <input
        {...rest}
        type="number"
        min={0}
        step="any"
        name={name}
        value={draft[name]}
        onInput={(event) => change({ [name]: event.currentTarget.value })}
      />
    </label>
  );
}

interface ChoiceProps extends Pick<FieldProps, "draft" | "change" | "name" | "label"> {
  options: Record<string, string>;
  /** What happens if nothing is chosen. */
  usual: string;
}

function Choice({ draft, change, name, label, options, usual }: ChoiceProps) {
  return (
    <label class="field">
      {label}
      <select
        name={name}
        value={draft[name]}
        onChange={(event) => change({ [name]: event.currentTarget.value })}
      >
        <option value="">by default: {usual}</option>
        {Object.entries(options).map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
