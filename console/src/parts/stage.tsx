import { ask, problemOf } from "../api/client";
import { useData } from "../api/data";
import { useMe } from "../api/session";
import { announce } from "../lib/news";
import { count, plural } from "../lib/text";
import { duration } from "../lib/time";
import { Panel } from "./panel";
import { Badge } from "./status";
import { Name } from "./text";

/** What `lamplighter dev` says of the program it runs. Other services have nothing of the kind. */
interface Dev {
  program: string;
  speed: number;
  children: { pid: number; state: string; running: number }[];
  killed: number;
  lost: number;
  recovering: boolean;
  recovered_seconds: number | null;
}

/** Under `lamplighter dev`: a button that kills a worker's process, and how many jobs it has cost. */
export function Stage() {
  const dev = useData<Dev>(useMe().dev ? "v1/dev" : null, { every: 1_000 });
  if (!dev.data) return null;
  const { program, speed, children, killed, lost, recovering, recovered_seconds: took } = dev.data;
  const kill = async () => {
    try {
      const { pid } = await ask<{ pid: number }>("v1/dev/kill-worker", { method: "POST" });
      announce(`process ${pid} was killed`);
      await dev.refresh();
    } catch (error) {
      announce(problemOf(error).detail, "bad");
    }
  };
  return (
    <Panel title="In development">
      <div class="stage">
        <button type="button" class="danger" onClick={() => void kill()}>
          Kill a worker
        </button>
        <span class="lost" role="status">
          <b>{count(lost)}</b> {lost === 1 ? "job" : "jobs"} lost,{" "}
          {plural(killed, "process", "processes")} killed
        </span>
        {recovering ? (
          <Badge tone="warn">its jobs are being given back</Badge>
        ) : (
          took !== null && <Badge tone="good">{`all of them back after ${duration(took)}`}</Badge>
        )}
        <span class="dim">
          <Name value={program} />
          {speed !== 1 && ` at ${count(speed)}-fold speed`},{" "}
          {children
            .map(({ pid, state, running }) => `${pid} ${state}, ${running} running`)
            .join("; ")}
        </span>
      </div>
    </Panel>
  );
}
