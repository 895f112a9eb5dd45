import { useEffect, useState } from "preact/hooks";
import { problemOf, type Refused } from "../api/client";
import { REPLAY, RETRY } from "../api/jobs";
import type { DeadDone } from "../api/schema";
import { begin, type Choice, foresee, type Verb } from "../lib/batches";
import { atLeast, plural } from "../lib/text";
import { ActDialog, Opener } from "./act";
import { Problem } from "./problem";
import { Name } from "./text";

interface Props {
  verb: Verb;
  choice: Choice;
  /** What is meant, in words. */
  what: string;
  label?: string;
  primary?: boolean;
  /** When it has begun. */
  after?: () => void;
}

/** A button that retries, replays or purges dead letters. Its dialog says how many are affected. */
export function DeadAct({ label, primary, ...order }: Props) {
  return (
    <Opener
      label={label ?? WORDS[order.verb]}
      hint={MEANINGS[order.verb]}
      scope="operator"
      danger={order.verb === "purge"}
      primary={primary}
      dialog={(close) => <DeadDialog {...order} onClose={close} />}
    />
  );
}

export const WORDS: Record<Verb, string> = { retry: "Retry", replay: "Replay", purge: "Purge" };

const MEANINGS: Record<Verb, string> = {
  retry: RETRY,
  replay: REPLAY,
  purge: "Purge removes the jobs permanently. This cannot be undone.",
};

/** Tells retry from replay, where both are offered. */
export function Difference() {
  return (
    <ul class="difference dim" aria-label="ways to run them again">
      <li>{RETRY}</li>
      <li>{REPLAY}</li>
    </ul>
  );
}

function DeadDialog({
  verb,
  choice,
  what,
  after,
  onClose,
}: Omit<Props, "label" | "primary"> & { onClose: () => void }) {
  const [seen, setSeen] = useState<DeadDone>();
  const [problem, setProblem] = useState<Refused>();
  const [rate, setRate] = useState("");
  useEffect(() => {
    foresee(verb, choice).then(setSeen, (error: unknown) => setProblem(problemOf(error)));
  }, []);
  const act = async (reason: string) => {
    const total = { count: seen?.left ?? 0, at_least: seen?.at_least ?? true };
    await begin({ verb, what, choice, total, rate: Number(rate) || 0, reason });
    after?.();
  };
  const word = WORDS[verb];
  return (
    <ActDialog
      label={word}
      title={`${word} ${what}`}
      danger={verb === "purge"}
      act={act}
      onClose={onClose}
    >
      {problem && <Problem problem={problem} />}
      <p role="status">{seen ? foretold(verb, seen) : "counting…"}</p>
      <p>{MEANINGS[verb]}</p>
      {seen && seen.ids.length > 0 && (
        <details>
          <summary>newest job ids</summary>
          <ul class="ids">
            {seen.ids.map((id) => (
              <li key={id}>
                <Name value={id} />
              </li>
            ))}
          </ul>
        </details>
      )}
      <label class="field">
        Jobs per second
        <input
          type="number"
          min={1}
          max={1000}
          step={1}
          placeholder="as fast as possible"
          value={rate}
          onInput={(event) => setRate(event.currentTarget.value)}
        />
      </label>
    </ActDialog>
  );
}

function foretold(verb: Verb, { left, at_least }: DeadDone): string {
  const many = at_least ? `${atLeast(left)} jobs` : plural(left, "job");
  return `${many} would ${verb === "purge" ? "be removed" : "run again"}.`;
}
