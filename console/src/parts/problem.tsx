import type { ComponentChildren } from "preact";
import type { Refused } from "../api/client";
import type { Data } from "../api/data";
import { second } from "../lib/time";
import { Stale } from "./stale";
import { Text } from "./text";

/** Why something was not done, and what to do about it. */
export function Problem({ problem }: { problem: Refused }) {
  return (
    <div class="problem" role="alert">
      <p>
        <Text value={problem.detail} />
      </p>
      {problem.hint && (
        <p class="dim">
          <Marked text={problem.hint} />
        </p>
      )}
    </div>
  );
}

/** A text in which names of settings and commands stand between backticks. */
function Marked({ text }: { text: string }) {
  return (
    <>
      {text.split("`").map((part, at) =>
        at % 2 ? (
          <code key={at}>
            <Text value={part} />
          </code>
        ) : (
          <Text key={at} value={part} />
        ),
      )}
    </>
  );
}

/** Why a part of a page is not up to date. That nobody answers is said above, once for all parts. */
export function PageProblem({ problem }: { problem: Refused }) {
  return isSaidAbove(problem) ? null : <Problem problem={problem} />;
}

function isSaidAbove(problem: Refused): boolean {
  return problem.isAway || problem.isStoreAway;
}

/**
 * Shows data when they are there; before, that they are awaited; and what is wrong, if anything.
 * Then what was there stays, and is said to be old.
 */
export function Loaded<T>({
  from,
  children,
}: {
  from: Data<T>;
  children: (data: T) => ComponentChildren;
}) {
  const { data, problem, since, loading } = from;
  return (
    <>
      {problem && <PageProblem problem={problem} />}
      {problem && data === undefined && isSaidAbove(problem) && (
        <p class="dim">Nothing is known yet.</p>
      )}
      {problem && data !== undefined && !isSaidAbove(problem) && since !== undefined && (
        <p class="dim">What follows is from before {second(since)}; it is asked for again.</p>
      )}
      {loading && (
        <p class="dim loading" role="status">
          one moment…
        </p>
      )}
      {data !== undefined && <Stale.Provider value={since}>{children(data)}</Stale.Provider>}
    </>
  );
}
