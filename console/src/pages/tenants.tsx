import { useEffect, useState } from "preact/hooks";
import { ask, place } from "../api/client";
import { useData } from "../api/data";
import type { Tenants as Answer, Tenant, TenantChange } from "../api/schema";
import { announce } from "../lib/news";
import { href } from "../lib/route";
import { type Look, looked, type Share, shares } from "../lib/shares";
import { count, counted } from "../lib/text";
import { useNow } from "../lib/time";
import { ActDialog, Opener } from "../parts/act";
import { Held, HoldAct } from "../parts/hold-act";
import { Page } from "../parts/panel";
import { Loaded } from "../parts/problem";
import { type Column, Table } from "../parts/table";
import { Name } from "../parts/text";

/** Who shares the workers, in which proportion, and who gets how much of them. */
export function Tenants() {
  const answer = useData<Answer>("v1/tenants", { signal: "overview" });
  const now = useNow();
  const [looks, setLooks] = useState<readonly Look[]>([]);
  useEffect(() => {
    const { data } = answer;
    if (data) setLooks((before) => looked(before, data.tenants, Date.now()));
  }, [answer.data]);
  const put = async (name: string, body: TenantChange, reason: string) => {
    await ask(place("v1/tenants", name), { method: "PUT", query: { reason }, body });
    announce(`the tenant ${name} is changed`);
    await answer.refresh();
  };
  return (
    <Page title="Tenants">
      <p class="dim explained">
        The upper bar is a tenant's part of the weights of all that have something to run and are
        not held; the lower one its part of what was running in the last minute, as far as this page
        has seen it. While all have enough waiting, both grow alike; whoever has little to run
        leaves the rest to others.
      </p>
      <Loaded from={answer}>
        {({ tenants }) => (
          <Table
            caption="tenants by name"
            rows={tenants}
            keyOf={(tenant) => tenant.name}
            columns={columns(shares(tenants, looks, now), put)}
            empty="No tenant has settings, waiting or running jobs."
          />
        )}
      </Loaded>
    </Page>
  );
}

type Put = (name: string, body: TenantChange, reason: string) => Promise<void>;

function columns(found: ReadonlyMap<string, Share>, put: Put): readonly Column<Tenant>[] {
  return [
    {
      head: "Tenant",
      cell: ({ name }) => (
        <a class="title" href={href(["jobs"], { tenant: name })}>
          <Name value={name} most={40} />
        </a>
      ),
    },
    { head: "Weight", cell: (tenant) => <Weight tenant={tenant} put={put} /> },
    { head: "Shares", cell: ({ name }) => <Bars name={name} share={found.get(name)} /> },
    { head: "Waiting", cell: ({ waiting }) => counted(waiting), number: true },
    { head: "Running", cell: ({ running }) => counted(running), number: true, wide: true },
    { head: "Held", cell: ({ hold }) => <Held note={hold} />, wide: true },
    {
      head: "",
      cell: ({ name, held }) => (
        <HoldAct
          what={`the tenant ${name}`}
          held={held}
          act={(next, reason) => put(name, { held: next }, reason)}
        />
      ),
    },
  ];
}

function Bars({ name, share }: { name: string; share: Share | undefined }) {
  return (
    <span class="shares">
      <Bar of={`weight of ${name}`} kind="next" word="of weights" part={share?.due ?? null} />
      <Bar of={`running of ${name}`} kind="lit" word="of running" part={share?.had ?? null} />
    </span>
  );
}

interface BarProps {
  of: string;
  kind: string;
  word: string;
  part: number | null;
}

function Bar({ of, kind, word, part }: BarProps) {
  const percent = part === null ? "–" : `${count(part * 100)} %`;
  return (
    <span class={`share ${kind}`}>
      <meter min={0} max={1} value={part ?? 0} aria-label={`share: ${of}`}>
        {percent}
      </meter>
      <span class="dim">
        {percent} <span class="word">{word}</span>
      </span>
    </span>
  );
}

function Weight({ tenant, put }: { tenant: Tenant; put: Put }) {
  return (
    <span class="set">
      {count(tenant.weight)}
      <Opener
        label="Set"
        scope="operator"
        dialog={(close) => <WeightDialog tenant={tenant} put={put} onClose={close} />}
      />
    </span>
  );
}

function WeightDialog({
  tenant: { name, weight },
  put,
  onClose,
}: {
  tenant: Tenant;
  put: Put;
  onClose: () => void;
}) {
  const [typed, setTyped] = useState(String(weight));
  return (
    <ActDialog
      label="Set"
      title={`Weight of the tenant ${name}`}
      act={(reason) => put(name, { weight: Number(typed) }, reason)}
      onClose={onClose}
    >
      <p>Its share of the workers, in proportion to the weights of others.</p>
      <label class="field">
        Weight
        <input
          type="number"
          autofocus
          required
          min={1}
          step={1}
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
      </label>
    </ActDialog>
  );
}
