import type { ComponentChildren } from "preact";
import type { Refused } from "../api/client";
import type { Data } from "../api/data";
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
          <Text value={problem.hint} />
        </p>
      )}
    </div>
  );
}

/** Shows data when they are there; before, that they are awaited; and what is wrong, if anything. */
export function Loaded<T>({
  from,
  children,
}: {
  from: Data<T>;
  children: (data: T) => ComponentChildren;
}) {
  return (
    <>
      {from.problem && <Problem problem={from.problem} />}
      {from.loading && (
        <p class="dim loading" role="status">
          one moment…
        </p>
      )}
      {from.data !== undefined && children(from.data)}
    </>
  );
}
