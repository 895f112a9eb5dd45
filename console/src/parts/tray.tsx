import { type Batch, dismiss, stop, useBatches } from "../lib/batches";
import { count, tallied } from "../lib/text";
import { WORDS } from "./dead-act";
import { Problem } from "./problem";
import { Text } from "./text";

/** What goes on in the background: how far it is, and a way to stop it. */
export function Tray() {
  const batches = useBatches();
  if (!batches.length) return null;
  return (
    <aside class="tray" aria-label="in the background">
      {batches.map((batch) => (
        <Running key={batch.id} batch={batch} />
      ))}
    </aside>
  );
}

function Running({ batch }: { batch: Batch }) {
  const { id, verb, what, done, total, rate, state, problem } = batch;
  const most = Math.max(total.count, done);
  return (
    <div class="task">
      <p>
        <b>{WORDS[verb]}</b> <Text value={what} />
        <span class="dim">
          {" "}
          · {state === "running" ? (rate ? `${count(rate)}/s` : "at full speed") : state}
        </span>
      </p>
      <progress max={most || 1} value={done} aria-label={`${verb} ${what}`} />
      <p class="row">
        <span>
          {count(done)} of {tallied({ count: most, at_least: total.at_least && state !== "done" })}
        </span>
        {state === "running" ? (
          <button type="button" onClick={() => stop(id)}>
            Stop
          </button>
        ) : (
          <button type="button" class="quiet" onClick={() => dismiss(id)}>
            dismiss
          </button>
        )}
      </p>
      {problem && <Problem problem={problem} />}
    </div>
  );
}
