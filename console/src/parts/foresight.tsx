import { useState } from "preact/hooks";
import type { Refused } from "../api/client";
import { useForesight } from "../api/schedules";
import type { PreviewBody } from "../api/schema";
import { duration } from "../lib/time";
import { Occurrences } from "./occurrences";
import { Panel } from "./panel";
import { Text } from "./text";

/** What would become of a schedule that is being written; it follows every key. */
export function ForesightPanel({ body, empty }: { body: PreviewBody | null; empty: string }) {
  const [after, setAfter] = useState("");
  const { seen, problem, job, busy } = useForesight(body, after);
  return (
    <Panel
      title="Preview"
      actions={
        <label class="inline">
          from{" "}
          <input
            type="date"
            aria-label="show runs from this day on"
            value={after.slice(0, 10)}
            onInput={(event) => {
              const day = event.currentTarget.value;
              setAfter(day && `${day}T00:00:00Z`);
            }}
          />
        </label>
      }
    >
      <div class="foresight" aria-live="polite" aria-busy={busy}>
        {!body && <p class="dim">{empty}</p>}
        {problem && <Wrong problem={problem} />}
        {job && <Wrong problem={job} />}
        {seen && !problem && (
          <>
            <p class="words">
              <Text value={seen.description} />
            </p>
            <Occurrences runs={seen.runs} clocks={seen.clocks} jump={setAfter} />
            {seen.shift === null && (
              <p class="dim">With jitter each is fired later; by how much depends on the id.</p>
            )}
            {seen.shift ? (
              <p class="dim">Each is fired {duration(seen.shift)} later: its jitter.</p>
            ) : null}
          </>
        )}
      </div>
    </Panel>
  );
}

/** What is wrong so far. It is no alarm: somebody is still writing. */
function Wrong({ problem }: { problem: Refused }) {
  return (
    <div class="problem">
      <p>
        <Text value={problem.detail} />
      </p>
      <p class="dim">
        <Text value={problem.hint} />
      </p>
    </div>
  );
}
