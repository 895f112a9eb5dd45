// Written by tools/console_types.py from the service's description. Not edited by hand.

/** Why an attempt failed, and where. */
export type AttemptError = {
  type: string;
  message: string;
  /** Same place, same kind: equal errors have equal fingerprints. */
  fingerprint: string;
  /** Empty: the handler was not at fault. */
  traceback: string;
};

/** One attempt to run a job. */
export type AttemptShape = {
  generation: number;
  number: number;
  lease: number;
  outcome: string;
  /** Where it ran; empty for callers of one tenant. */
  worker: string;
  started_at: string;
  finished_at: string | null;
  error: AttemptError | null;
};

/** Attempts of a job, oldest first. */
export type Attempts = {
  attempts: AttemptShape[];
  /** The cursor that leads to those before them; null: there are none. */
  next: string | null;
};

/** Some entries, newest first. */
export type Audit = {
  entries: Entry[];
  /** Cursor of the next page; null: that was all. */
  next: string | null;
};

/** Which occurrences of the past are to be run. */
export type BackfillBody = {
  /** After this instant… */
  from: string;
  /** …up to this one. */
  to: string;
  /** How many of its jobs may be unfinished at once. By default `1`. */
  at_once?: number;
};

/** How far a backfill is. */
export type BackfillState = {
  from: string;
  to: string;
  /** All up to this have their job. */
  at: string;
  at_once: number;
  made: number;
};

/** Which of the occurrences that nobody was there to fire are made up for. */
export type CatchUp = "all" | "latest" | "none";

/** How many jobs were answered what. */
export type ChangeAnswers = {
  done: number;
  /** Running jobs that were told to stop. */
  requested: number;
  /** It was so before. */
  already: number;
  /** The job's state forbids it, or it has left the statuses that were meant. */
  conflict: number;
  /** The job is not there any more. */
  unknown: number;
};

/** A change of the clocks that touches a schedule. */
export type ClockChange = {
  at: string;
  timezone: string;
  /** `skipped`, `moved`: a time that the clocks skip does not happen, or happens when they have; `doubled`, `first only`: one that they show twice happens twice, or the first time. */
  effect: "doubled" | "first only" | "moved" | "skipped";
  /** The first time of the schedule that it concerns, as the clocks would show it. */
  wall: string;
};

/** A number of jobs. */
export type Count = {
  count: number;
  /** Whether there may be more: nobody counts beyond 10,000, and `due` and `scheduled` not beyond 500 in a queue. */
  at_least: boolean;
};

/** Which dead letters, and how many of them at once. */
export type DeadChoice = {
  type?: string[];
  queue?: string[];
  tenant?: string[];
  /** Id of the schedule that made them. */
  schedule?: string[];
  /** Cause of the last error; `none` means jobs that have no such cause. */
  fingerprint?: string[];
  tag?: string | null;
  /** Created at this instant or later… */
  created_after?: string | null;
  /** …and before this one. */
  created_before?: string | null;
  finished_after?: string | null;
  finished_before?: string | null;
  /** Mean all of them, without a filter. By default `false`. */
  all?: boolean;
  /** Only tell which would be meant. By default `false`. */
  dry_run?: boolean;
  /** How many at most in this request. By default `100`. */
  limit?: number;
  /** `next` of the answer before, to go on with older ones. */
  cursor?: string | null;
};

/** What was done to dead letters, or would be. */
export type DeadDone = {
  dry_run: boolean;
  /** To how many it was done. */
  done: number;
  /** Those that were chosen, the newest first. */
  ids: string[];
  /** How many the filter still means now, among the newest 10,000 dead letters. */
  left: number;
  /** Whether there are older dead letters, so that the filter may mean more than `left`. */
  at_least: boolean;
  /** Cursor to go on with, to older ones; null: all have been seen. */
  next: string | null;
};

/** Dead letters of one type with one cause. */
export type DeadGroup = {
  fingerprint: string;
  type: string;
  queue: string;
  count: number;
  newest_at: string;
  /** Id of the newest job among them. */
  example: string;
  reason: string;
  error: ErrorSummary | null;
};

/** Dead letters by cause, the most frequent first; the newest 10,000 are counted. */
export type DeadGroups = {
  groups: DeadGroup[];
  /** Whether there are older ones, which were not looked at: each count may be too small, and causes may be missing. */
  at_least: boolean;
};

/** A schedule that is gone. */
export type DeletedSchedule = {
  id: string;
};

/** What happens to a started job whose end nobody saw. */
export type Delivery = "at_least_once" | "at_most_once";

/** Somebody has changed something. */
export type Entry = {
  id: string;
  at: string;
  by: string;
  /** What was done, such as `job.cancel`. */
  action: string;
  /** To what: an id, a name, or what was chosen. */
  object: string;
  /** Whose it is; null: nobody's, or everybody's. */
  tenant: string | null;
  reason: string;
  /** What became of it. */
  answer: string;
};

/** A job of which nothing is left. */
export type ErasedJob = {
  id: string;
};

/** Why the last attempt failed. */
export type ErrorSummary = {
  type: string;
  message: string;
};

/** Why a job is not running, the most decisive reason first. */
export type Explanation = {
  id: string;
  status: Status;
  reasons: WhyNot[];
};

/** When a schedule would fire that is not stored. */
export type Foretold = {
  /** The calendar in words. */
  description: string;
  /** Seconds by which each is fired later, because of the jitter; null: its id decides about that, and none was given. */
  shift: number | null;
  /** The next change of the clocks that touches it; null: none does. */
  clocks: ClockChange | null;
  runs: PreviewShape[];
};

/** What happened in some time. */
export type Happened = {
  started: number;
  succeeded: number;
  /** Jobs that died. */
  failed: number;
  /** Failures after which the job is tried again. */
  retried: number;
  /** Jobs that wait again without a failure: snoozed, or given back. */
  snoozed: number;
  /** Jobs that were cancelled while they ran. */
  cancelled: number;
  /** Jobs that were given back after the loss of their worker. */
  rescued: number;
  /** Results that were refused, because the job belonged to somebody else by then. */
  stale: number;
};

/** All is well. */
export type Health = {
  status: string;
};

/** A job. */
export type Job = {
  id: string;
  type: string;
  queue: string;
  tenant: string;
  status: Status;
  /** When it is due, if it waits. */
  next_run: string | null;
  created_at: string;
  /** When its last attempt began. */
  started_at: string | null;
  finished_at: string | null;
  /** What its handler returned, if it succeeded. This, `reason`, `error` and `progress` are null in answers to changes by callers without the scope `jobs:read`. */
  result: unknown;
  /** Why there is no result although it succeeded. */
  result_note: string | null;
  /** Why it is dead or cancelled. */
  reason: string | null;
  error: ErrorSummary | null;
  /** How far its last attempt has said that it has come. */
  progress: ProgressShape | null;
  /** In lists: fields that are left out or cut because they are large; `GET /v1/jobs/{id}` has them. */
  omitted: string[];
};

/** What is done to which jobs, and to how many of them at once. */
export type JobChange = {
  action: "cancel" | "hold" | "purge" | "replay" | "retry" | "unhold";
  /** Which jobs. Those in a status in which the action does nothing are passed over. With statuses, a job that has left them meanwhile is a `conflict`. */
  filter?: JobChoice;
  /** Mean all jobs, without a filter. By default `false`. */
  all?: boolean;
  /** Kept with what is changed, for others to see. By default `""`. */
  reason?: string;
  /** Only tell what would be answered. By default `false`. */
  dry_run?: boolean;
  /** How many jobs at most in this request. By default `100`. */
  limit?: number;
  /** `next` of the answer before, to go on with older ones. */
  cursor?: string | null;
};

/** Which jobs; several values of one field mean any of them. */
export type JobChoice = {
  type?: string[];
  queue?: string[];
  tenant?: string[];
  /** Id of the schedule that made them. */
  schedule?: string[];
  /** Cause of the last error; `none` means jobs that have no such cause. */
  fingerprint?: string[];
  tag?: string | null;
  /** Created at this instant or later… */
  created_after?: string | null;
  /** …and before this one. */
  created_before?: string | null;
  finished_after?: string | null;
  finished_before?: string | null;
  /** A status, or `pending` (scheduled, ready, retrying) or `failed` (dead). */
  status?: string[];
};

/** What a job was given and how it is to be run. */
export type JobInput = {
  id: string;
  /** By name, without those that are secret. */
  arguments: unknown;
  metadata: Record<string, unknown>;
  tags: string[];
  /** `critical`, `high`, `normal` or `low`. */
  priority: string;
  /** What becomes of it if nobody sees the end of an attempt. */
  delivery: Delivery;
  /** Seconds its handler has; null: what its type says. */
  timeout: number | null;
  /** Null: what its type says. */
  retry: RetryPolicy | null;
  /** Id of the schedule that made it. */
  schedule: string | null;
  progress: ProgressShape | null;
  /** Who holds it, and why. */
  hold: Note | null;
  /** Who asked for its end, and why. */
  cancel: Note | null;
};

/** Some jobs, newest first. */
export type JobPage = {
  jobs: Job[];
  /** Cursor of the next page; null: that was all. A page may be short and have one. */
  next: string | null;
};

/** When a job is to run again and again. */
export type JobSchedule = {
  /** One of cron, every, rrule and at says when. */
  cron?: string | null;
  /** Whole seconds between runs. */
  every?: number | null;
  /** An iCalendar rule; counts from `start`. */
  rrule?: string | null;
  /** A single instant. */
  at?: string | null;
  /** Whose clocks a cron expression or a rule follows; UTC without it. */
  timezone?: string | null;
  /** What becomes of times that the clocks skip. */
  gap?: "next_valid" | "skip" | null;
  /** What becomes of times that the clocks show twice. */
  twice?: "both" | "first" | null;
  /** What becomes of a run while the one before it has not ended. */
  overlap?: "allow" | "cancel_running" | "queue_all" | "queue_one" | "skip" | null;
  /** What is made up for of that which nobody was there to fire. */
  catch_up?: "all" | "latest" | "none" | null;
  /** Seconds after which it is not made up for. */
  window?: number | null;
  /** Shift it by a part of these seconds that is always the same for its id. */
  jitter?: number | null;
  start?: string | null;
  end?: string | null;
  max_runs?: number | null;
  /** Hold it after so many failed runs in a row. */
  hold_after?: number | null;
  keep_succeeded?: number | null;
  /** How many ended runs are remembered. */
  keep_failed?: number | null;
  /** Name of the schedule; without it one is drawn. */
  id?: string | null;
};

/** One version of a job type. */
export type JobType = {
  name: string;
  queue: string;
  hash: string;
  live_workers: number;
  /** JSON Schema of its arguments. */
  schema: Record<string, unknown>;
  held: boolean;
};

/** The job types that workers have published. */
export type JobTypes = {
  types: JobType[];
};

/** What was done to jobs, or would be. */
export type JobsChanged = {
  dry_run: boolean;
  answers: ChangeAnswers;
  /** Cursor to go on with, to older jobs; null: all have been seen. */
  next: string | null;
};

/** How late jobs began after they had fallen due, estimated; null: none began. */
export type Lag = {
  p50_seconds: number | null;
  p95_seconds: number | null;
  p99_seconds: number | null;
};

/** One line of a log. */
export type LogLine = {
  /** Names the attempt. */
  lease: number;
  /** Place in the attempt's log; numbers that are missing were cut. */
  number: number;
  at: string | null;
  level: string;
  text: string;
};

/** Some lines of a job's log, oldest first. */
export type LogPage = {
  lines: LogLine[];
  /** Cursor behind the last line, also for lines that are yet to come; null: there were none. */
  next: string | null;
};

/** What somebody logs in with: one of the two. */
export type Login = {
  /** A key or a token of the service. */
  token?: string | null;
  /** A code that `lamplighter token login` has printed; it is good for one login. */
  code?: string | null;
  /** Whether the session of somebody else that this browser has is to be ended. By default `false`. */
  replace?: boolean;
};

/** Whoever asks, and what they may do. */
export type Me = {
  name: string;
  /** All that they have, with those that others include. */
  scopes: Scope[];
  /** The only tenant whose jobs and schedules exist for them; null: all do. */
  tenant: string | null;
  /** Only in a session: what the page has to know of it. */
  session?: SessionShape;
  /** Only under `lamplighter dev`: there is a program to look at, at `/v1/dev`. */
  dev?: boolean;
};

/** A schedule: which job, and when. */
export type NewScheduleBody = {
  /** One of cron, every, rrule and at says when. */
  cron?: string | null;
  /** Whole seconds between runs. */
  every?: number | null;
  /** An iCalendar rule; counts from `start`. */
  rrule?: string | null;
  /** A single instant. */
  at?: string | null;
  /** Whose clocks a cron expression or a rule follows; UTC without it. */
  timezone?: string | null;
  /** What becomes of times that the clocks skip. */
  gap?: "next_valid" | "skip" | null;
  /** What becomes of times that the clocks show twice. */
  twice?: "both" | "first" | null;
  /** What becomes of a run while the one before it has not ended. */
  overlap?: "allow" | "cancel_running" | "queue_all" | "queue_one" | "skip" | null;
  /** What is made up for of that which nobody was there to fire. */
  catch_up?: "all" | "latest" | "none" | null;
  /** Seconds after which it is not made up for. */
  window?: number | null;
  /** Shift it by a part of these seconds that is always the same for its id. */
  jitter?: number | null;
  start?: string | null;
  end?: string | null;
  max_runs?: number | null;
  /** Hold it after so many failed runs in a row. */
  hold_after?: number | null;
  keep_succeeded?: number | null;
  /** How many ended runs are remembered. */
  keep_failed?: number | null;
  /** Its name; the same again changes it. Without it one is drawn. */
  id?: string | null;
  /** Arguments of each job by name, as the type's schema says. Arguments, metadata and the lists of a retry policy may have 64 KiB together, as JSON. */
  arguments?: Record<string, unknown>;
  queue?: string | null;
  priority?: "critical" | "high" | "low" | "normal" | null;
  /** On whose behalf its jobs run. */
  tenant?: string | null;
  retry?: RetryPolicy | null;
  /** Seconds the handler has. */
  timeout?: number | null;
  tags?: string[] | null;
  /** Arguments, metadata and the lists of a retry policy may have 64 KiB together, as JSON. */
  metadata?: Record<string, unknown> | null;
  /** Name of the job type. */
  type: string;
};

/** Who did it, why and when. */
export type Note = {
  by: string;
  reason: string;
  at: string;
};

/** The job that has been due for longest without running. */
export type OldestJob = {
  id: string;
  queue: string;
  due_seconds: number;
};

/** What happens to an occurrence while the run before it has not ended. */
export type Overlap = "allow" | "cancel_running" | "queue_all" | "queue_one" | "skip";

/** The whole store, at one moment. */
export type Overview = {
  at: string;
  /** All that wait, whatever for. */
  waiting: Count;
  /** Those of them that are due and could run. */
  due: Count;
  /** Those of them that are due later. */
  scheduled: Count;
  /** Those of them that have a hold of their own. */
  held: Count;
  running: Count;
  /** Dead letters. */
  dead: Count;
  oldest: OldestJob | null;
  /** Workers that are alive. */
  workers: number;
  /** Jobs that they can run at once. */
  slots: number;
  last_minute: Happened;
  /** Of the starts of the last five minutes. */
  lag: Lag;
  /** For how long the schedule that waits longest should have been fired; 0: none waits. */
  fire_lag_seconds: number;
};

/** A schedule as it might be put. */
export type PreviewBody = {
  /** One of cron, every, rrule and at says when. */
  cron?: string | null;
  /** Whole seconds between runs. */
  every?: number | null;
  /** An iCalendar rule; counts from `start`. */
  rrule?: string | null;
  /** A single instant. */
  at?: string | null;
  /** Whose clocks a cron expression or a rule follows; UTC without it. */
  timezone?: string | null;
  /** What becomes of times that the clocks skip. */
  gap?: "next_valid" | "skip" | null;
  /** What becomes of times that the clocks show twice. */
  twice?: "both" | "first" | null;
  /** What becomes of a run while the one before it has not ended. */
  overlap?: "allow" | "cancel_running" | "queue_all" | "queue_one" | "skip" | null;
  /** What is made up for of that which nobody was there to fire. */
  catch_up?: "all" | "latest" | "none" | null;
  /** Seconds after which it is not made up for. */
  window?: number | null;
  /** Shift it by a part of these seconds that is always the same for its id. */
  jitter?: number | null;
  start?: string | null;
  end?: string | null;
  max_runs?: number | null;
  /** Hold it after so many failed runs in a row. */
  hold_after?: number | null;
  keep_succeeded?: number | null;
  /** How many ended runs are remembered. */
  keep_failed?: number | null;
  /** Its name; the same again changes it. Without it one is drawn. */
  id?: string | null;
  /** Arguments of each job by name, as the type's schema says. Arguments, metadata and the lists of a retry policy may have 64 KiB together, as JSON. */
  arguments?: Record<string, unknown>;
  queue?: string | null;
  priority?: "critical" | "high" | "low" | "normal" | null;
  /** On whose behalf its jobs run. */
  tenant?: string | null;
  retry?: RetryPolicy | null;
  /** Seconds the handler has. */
  timeout?: number | null;
  tags?: string[] | null;
  /** Arguments, metadata and the lists of a retry policy may have 64 KiB together, as JSON. */
  metadata?: Record<string, unknown> | null;
  /** Name of the job type; without it only the times are looked at, and not the job. */
  type?: string | null;
};

/** An occurrence to come. */
export type PreviewShape = {
  utc: string;
  /** The same instant as the clocks of its time zone show it, with the offset. */
  local: string;
  /** What a change of the clocks has to do with it. */
  mark: "first of two" | "moved out of a gap" | "second of two" | null;
};

/** The next occurrences of a schedule. */
export type Previews = {
  id: string;
  /** Seconds by which each is fired later, because of the jitter. */
  shift: number;
  /** The next change of the clocks that touches it; null: none does. */
  clocks: ClockChange | null;
  runs: PreviewShape[];
};

/** What is wrong, why, and what to do about it. */
export type Problem = {
  /** Names the kind of problem, as a URN that ends in the code. */
  type: string;
  title: string;
  status: number;
  /** Stable name of the problem, for programs. */
  code: string;
  /** What is wrong, and why. */
  detail: string;
  /** What to do about it. */
  hint: string;
  /** The value that cannot be used, shortened. */
  value?: string | null;
};

/** How far the last attempt said it had come, in its own units. */
export type ProgressShape = {
  done: number;
  total: number | null;
  note: string;
};

/** What became of a schedule that was put. */
export type PutSchedule = {
  id: string;
  tenant: string;
  /** `created`; `changed`; `already`: it was exactly so before. */
  answer: "already" | "changed" | "created";
  version: number;
  /** When it is fired next; null: never, or it is held. */
  next_run: string | null;
};

/** A queue. Counts are exact up to 10,000; then they mean: at least. */
export type Queue = {
  name: string;
  ready: number;
  scheduled: number;
  running: number;
  /** Waiting jobs, due or not. */
  waiting_by_priority: Record<string, number>;
  oldest_due_seconds: number | null;
  /** A job that has been due for longer goes first, whatever its priority. */
  max_wait_seconds: number;
  held: boolean;
  hold: Note | null;
};

/** What is set on a queue; what is left out stays. */
export type QueueChange = {
  /** How long a job may be due before it goes first, whatever its priority. */
  max_wait_seconds?: number | null;
  /** Whether its jobs are kept from running. */
  held?: boolean | null;
};

/** All queues. */
export type Queues = {
  queues: Queue[];
};

/** A queue that is listed no more. */
export type RemovedQueue = {
  name: string;
  /** `done`, or `already`: it was removed before. */
  answer: string;
};

/** How often and after which pauses, in seconds, a failed job is tried again. */
export type RetryPolicy = {
  max_attempts?: number | null;
  /** The pause before each retry. Arguments, metadata and the lists of a retry policy may have 64 KiB together, as JSON. */
  delays?: number[] | null;
  /** The same pause always. */
  fixed?: number | null;
  /** By default `1.0`. */
  base?: number;
  /** By default `2.0`. */
  factor?: number;
  /** By default `300.0`. */
  cap?: number;
  /** By default `0.3`. */
  jitter?: number;
  /** Names of errors that end the job at once. Arguments, metadata and the lists of a retry policy may have 64 KiB together, as JSON. */
  no_retry_on?: string[];
};

/** Where a run comes from. */
export type RunKind = "backfill" | "due" | "trigger";

/** Some runs, the latest due first. */
export type RunPage = {
  runs: RunShape[];
  /** Cursor of the next page; null: that was all. */
  next: string | null;
};

/** What became of an occurrence. */
export type RunShape = {
  due: string;
  state: RunState;
  kind: RunKind;
  job: string | null;
  /** Why it was skipped. */
  reason: string | null;
  /** Of skipped ones that stand together: the first. */
  first: string | null;
  /** How many they are; null: very many. */
  count: number | null;
  written_at: string;
  started_at: string | null;
  finished_at: string | null;
};

/** What became of an occurrence. */
export type RunState = "cancelled" | "dead" | "expired" | "queued" | "skipped" | "started" | "succeeded";

/** What is to be different about a schedule; null means: by default. */
export type ScheduleChange = {
  cron?: string | null;
  every?: number | null;
  rrule?: string | null;
  at?: string | null;
  timezone?: string | null;
  gap?: "next_valid" | "skip" | null;
  twice?: "both" | "first" | null;
  overlap?: "allow" | "cancel_running" | "queue_all" | "queue_one" | "skip" | null;
  catch_up?: "all" | "latest" | "none" | null;
  window?: number | null;
  jitter?: number | null;
  start?: string | null;
  end?: string | null;
  max_runs?: number | null;
  hold_after?: number | null;
  keep_succeeded?: number | null;
  keep_failed?: number | null;
  /** Arguments, metadata and the lists of a retry policy may have 64 KiB together, as JSON. */
  arguments?: Record<string, unknown>;
  queue?: string | null;
  priority?: "critical" | "high" | "low" | "normal" | null;
  retry?: RetryPolicy | null;
  timeout?: number | null;
  tags?: string[] | null;
  /** Arguments, metadata and the lists of a retry policy may have 64 KiB together, as JSON. */
  metadata?: Record<string, unknown> | null;
  type?: string;
};

/** Some schedules by tenant and id. */
export type SchedulePage = {
  schedules: ScheduleShape[];
  /** Cursor of the next page; null: that was all. A page may be short and have one. */
  next: string | null;
};

/** A schedule. */
export type ScheduleShape = {
  id: string;
  type: string;
  tenant: string;
  /** Grows with every change. */
  version: number;
  /** When it is fired next; null: never, or it is held. */
  next_run: string | null;
  spec: ScheduleSpec | null;
  /** Why there is no `spec`: another version has written it, or whoever has changed it may not read schedules. */
  unreadable: string | null;
  fired: number;
  skipped: number;
  /** Runs that have failed since the last that succeeded. */
  failures: number;
  last_due: string | null;
  last_job: string | null;
  hold: Note | null;
  backfill: BackfillState | null;
  created_at: string;
  changed_at: string;
};

/** When a schedule fires, which job it runs, and what it does when things go wrong. */
export type ScheduleSpec = {
  /** As it is stored: `kind`, and what belongs to it. */
  calendar: Record<string, unknown>;
  /** The calendar in words. */
  description: string;
  /** Without those that are secret. */
  arguments: unknown;
  queue: string;
  priority: string;
  timeout: number | null;
  tags: string[];
  metadata: Record<string, unknown>;
  overlap: Overlap;
  catch_up: CatchUp;
  window: number;
  jitter: number;
  /** Seconds by which its jitter fires it later than its calendar says. */
  shift: number;
  start: string | null;
  end: string | null;
  max_runs: number | null;
  hold_after: number | null;
  keep_succeeded: number;
  keep_failed: number;
  /** In lists: fields that are left out because they are large; `GET /v1/schedules/{id}` has them. */
  omitted: string[];
};

/** What somebody may do. */
export type Scope = "admin" | "jobs:erase" | "jobs:read" | "jobs:write" | "operator" | "operator:read" | "schedules:read" | "schedules:write";

/** The session of a browser. */
export type SessionShape = {
  /** Sent as the header `X-CSRF-Token` with each request of the session that changes something. */
  csrf: string;
  /** When it ends, whatever is done in it. */
  ends_at: string;
  /** How long it lasts while nothing is done. Requests with the header `X-User-Active` count, and changes. */
  idle_seconds: number;
};

/** What happened, minute by minute, oldest first; the last one is not over. */
export type Stats = {
  minutes: StatsMinute[];
};

/** What happened in one minute. */
export type StatsMinute = {
  started: number;
  succeeded: number;
  /** Jobs that died. */
  failed: number;
  /** Failures after which the job is tried again. */
  retried: number;
  /** Jobs that wait again without a failure: snoozed, or given back. */
  snoozed: number;
  /** Jobs that were cancelled while they ran. */
  cancelled: number;
  /** Jobs that were given back after the loss of their worker. */
  rescued: number;
  /** Results that were refused, because the job belonged to somebody else by then. */
  stale: number;
  /** When it began. */
  at: string;
  lag: Lag;
};

/** What people are shown: the state, refined by due time, holds and flags. */
export type Status = "blocked" | "cancelled" | "cancelling" | "claimed" | "dead" | "expired" | "paused" | "ready" | "retrying" | "running" | "scheduled" | "succeeded";

/** A job to be run. */
export type Submission = {
  /** Name of the job type. */
  type: string;
  /** Arguments by name, as the type's schema says. Arguments, metadata and the lists of a retry policy may have 64 KiB together, as JSON. */
  arguments?: Record<string, unknown>;
  /** Seconds from now until it is due. */
  delay?: number | null;
  /** When it is due, instead of `delay`; the past means now. */
  run_at?: string | null;
  /** When it runs again and again, instead of `delay` and `run_at`. */
  schedule?: JobSchedule | null;
  queue?: string | null;
  priority?: "critical" | "high" | "low" | "normal" | null;
  /** On whose behalf it runs. */
  tenant?: string | null;
  retry?: RetryPolicy | null;
  /** Seconds its handler has. */
  timeout?: number | null;
  tags?: string[] | null;
  /** Arguments, metadata and the lists of a retry policy may have 64 KiB together, as JSON. */
  metadata?: Record<string, unknown> | null;
  /** The caller's own name for this submission, like the header `Idempotency-Key`. */
  idempotency_key?: string | null;
};

/** What became of a submission. */
export type Submitted = {
  /** Id of the job: the new one, or the one that has the key already. Of the schedule, if one was asked for. */
  id: string;
  /** `created`; `already`: this submission was made before; `gone`: it was made before, and its job has been removed since; `conflict`, in batches only: another submission has the key; `changed`, of schedules only: there was another one of this id. */
  answer: "already" | "changed" | "conflict" | "created" | "gone";
  /** Of a schedule: when it is fired next; null: never, or it is held. */
  next_run?: string | null;
};

/** What became of each submission of a batch, in its order. */
export type SubmittedBatch = {
  jobs: Submitted[];
  created: number;
};

/** Whoever jobs run for. Counts are exact up to 10,000; then they mean: at least. */
export type Tenant = {
  name: string;
  /** Share of the workers, in proportion to the weights of others. */
  weight: number;
  waiting: number;
  running: number;
  held: boolean;
  hold: Note | null;
};

/** What is set on a tenant; what is left out stays. */
export type TenantChange = {
  /** Share of the workers, in proportion to the weights of others. */
  weight?: number | null;
  /** Whether its jobs are kept from running. */
  held?: boolean | null;
};

/** The tenants that have settings, waiting or running jobs. */
export type Tenants = {
  tenants: Tenant[];
};

/** A run that was asked for. */
export type TriggeredRun = {
  id: string;
  /** Id of its job. */
  job: string;
  /** `started`, or `queued`: it runs when the run before it has ended. */
  state: RunState;
};

/** One reason why a job is not running. */
export type WhyNot = {
  why: string;
  text: string;
  until: string | null;
  count: number | null;
  note: Note | null;
};

/** A worker. */
export type Worker = {
  id: string;
  host: string;
  pid: number;
  state: string;
  queues: string[];
  types: string[];
  slots: number;
  running: number;
  joined_at: string;
  beat_at: string;
};

/** All workers. */
export type Workers = {
  workers: Worker[];
};
