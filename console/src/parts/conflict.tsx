import type { Difference } from "../lib/draft";
import { Line } from "./text";

interface Props {
  differences: readonly Difference[];
  /** Puts one's own changes on top of what is there now. */
  keep: () => void;
  /** Drops one's own changes. */
  drop: () => void;
}

/** Somebody else was quicker: what they have changed, and what to do about it. */
export function Conflict({ differences, keep, drop }: Props) {
  return (
    <section class="problem conflict" role="alert" aria-label="conflict">
      <p>
        <b>Somebody else has changed this schedule since you opened it.</b> Nothing of yours is
        stored yet.
      </p>
      {differences.length > 0 && (
        <div class="table">
          <table>
            <caption class="unseen">what they have changed</caption>
            <thead>
              <tr>
                <th scope="col">Field</th>
                <th scope="col">When you opened it</th>
                <th scope="col">Now</th>
                <th scope="col">Yours</th>
              </tr>
            </thead>
            <tbody>
              {differences.map(({ name, before, theirs, mine }) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  <td>
                    <Said text={before} />
                  </td>
                  <td>
                    <Said text={theirs} />
                  </td>
                  <td>
                    {mine === before ? <span class="dim">as it was</span> : <Said text={mine} />}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <div class="actions">
        <button type="button" class="primary" onClick={keep}>
          Put my changes on top
        </button>
        <button type="button" onClick={drop}>
          Drop my changes
        </button>
      </div>
    </section>
  );
}

function Said({ text }: { text: string }) {
  return text ? <Line value={text} most={60} /> : <span class="dim">by default</span>;
}
