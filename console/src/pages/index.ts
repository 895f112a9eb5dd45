// Every page there is. A page is one file here, and one line below.

import type { ComponentType } from "preact";
import type { Terms } from "../api/session";
import type { Route } from "../lib/route";
import { Dead } from "./dead";
import { JobPage } from "./job";
import { Jobs } from "./jobs";
import { Nowhere } from "./nowhere";
import { Overview } from "./overview";
import { Queues } from "./queues";
import { SchedulePage } from "./schedule";
import { Schedules } from "./schedules";
import { Tenants } from "./tenants";
import { Workers } from "./workers";

export interface PageProps {
  route: Route;
}

/** A page. Whoever does not fulfil its terms does not find it in the menu. */
export interface PageEntry extends Terms {
  /** First part of its address. */
  path: string;
  name: string;
  /** `g` and this key lead there. */
  key: string;
  show: ComponentType<PageProps>;
}

export const PAGES: readonly PageEntry[] = [
  { path: "", name: "Overview", key: "o", scope: "operator:read", whole: true, show: Overview },
  { path: "jobs", name: "Jobs", key: "j", scope: "jobs:read", show: Jobs },
  { path: "dead", name: "Dead letters", key: "d", scope: "operator", show: Dead },
  { path: "schedules", name: "Schedules", key: "s", scope: "schedules:read", show: Schedules },
  {
    path: "workers",
    name: "Workers",
    key: "w",
    scope: "operator:read",
    whole: true,
    show: Workers,
  },
  { path: "queues", name: "Queues", key: "q", scope: "operator:read", whole: true, show: Queues },
  {
    path: "tenants",
    name: "Tenants",
    key: "t",
    scope: "operator:read",
    whole: true,
    show: Tenants,
  },
];

const JOB: PageEntry = { path: "jobs", name: "Job", key: "", scope: "jobs:read", show: JobPage };
const SCHEDULE: PageEntry = {
  path: "schedules",
  name: "Schedule",
  key: "",
  scope: "schedules:read",
  show: SchedulePage,
};
const NOWHERE: PageEntry = {
  path: "?",
  name: "Nowhere",
  key: "",
  scope: "jobs:read",
  show: Nowhere,
};

/** Gives the page of an address. */
export function pageOf(route: Route): PageEntry {
  const [first = "", second] = route.parts;
  if (first === "jobs" && second) return JOB;
  if (first === "schedules" && second) return SCHEDULE;
  return PAGES.find((page) => page.path === first) ?? NOWHERE;
}
