import { useEffect, useState } from "preact/hooks";
import { problemOf, type Refused } from "../api/client";
import type { DeadDone } from "../api/schema";
import { useMay } from "../api/session";
import { begin, type Choice, foresee, type Verb } from "../lib/replay";
import { counted, plural } from "../lib/text";
import { ActDialog } from "./act";
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

/** A button that runs dead letters again, or removes them: first it tells how many it would be. */
export function ReplayAct({ label, primary, ...order }: Props) {
  const [open, setOpen] = useState(false);
  const may = useMay()("operator");
  const said = label ?? (order.verb === "replay" ? "Replay" : "Purge");
  return (
    <>
      <button
        type="button"
        class={order.verb === "purge" ? "danger" : primary ? "primary" : undefined}
        disabled={!may}
        title={may ? undefined : "needs the scope operator"}
        onClick={() => setOpen(true)}
      >
        {said}
      </button>
      {open && <ReplayDialog {...order} onClose={() => setOpen(false)} />}
    </>
  );
}

function ReplayDialog({
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
    await begin({ verb, what, choice, total: seen?.left ?? 0, rate: Number(rate) || 0, reason });
    after?.();
  };
  const word = verb === "replay" ? "Replay" : "Purge";
  return (
    <ActDialog
      label={word}
      title={`${word} ${what}`}
      danger={verb === "purge"}
      act={act}
      onClose={onClose}
    >
      {problem && <Problem problem={problem} />}
      <p role="status">{seen ? foretold(verb, seen.left) : "counting…"}</p>
      {seen && seen.ids.length > 0 && (
        <details>
          <summary>the newest of them</summary>
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

function foretold(verb: Verb, left: number): string {
  const many = left >= 10_000 ? `${counted(left)} jobs` : plural(left, "job");
  return verb === "replay"
    ? `${many} would run again, under the same id, with all attempts anew.`
    : `${many} would be removed for ever. Nothing brings them back.`;
}
