// The pages: address, place and name in the rail, the key after g, the capability
// without which there is nothing to see, and the code.
import type { Call } from "./api";
import { boxList, ciRuns, prAll, prPendingApprovals, projectList, sessionList, taskList, templateList } from "./client.gen";
import type { PageModule } from "./route";

export type Entry = {
  path: string;
  load: () => Promise<PageModule>;
  name?: string; // in the rail; pages of one object have none
  section?: string; // of the rail
  key?: string; // after g
  needs?: Pick<Call<never, unknown>, "scope">; // without its scope the page says which is missing
  operators?: boolean; // only for operators of the platform
};

export const pages: Entry[] = [
  { path: "/ui", name: "Home", key: "h", load: () => import("./pages/home") },
  { path: "/ui/tasks", name: "Tasks", section: "Work", key: "t", needs: taskList, load: () => import("./pages/tasks") },
  { path: "/ui/tasks/{id}", needs: taskList, load: () => import("./pages/task") },
  { path: "/ui/prs", name: "Pull requests", section: "Work", key: "r", needs: prAll, load: () => import("./pages/prs") },
  { path: "/ui/prs/{id}", needs: prAll, load: () => import("./pages/pr") },
  { path: "/ui/approvals", name: "Approvals", section: "Work", key: "v", needs: prPendingApprovals, load: () => import("./pages/approvals") },
  { path: "/ui/boxes", name: "Boxes", section: "Fleet", key: "x", needs: boxList, load: () => import("./pages/boxes") },
  { path: "/ui/boxes/{id}", needs: boxList, load: () => import("./pages/box") },
  { path: "/ui/ci", name: "CI runs", section: "Fleet", key: "c", needs: ciRuns, load: () => import("./pages/ci") },
  { path: "/ui/templates", name: "Templates", section: "Fleet", needs: templateList, load: () => import("./pages/templates") },
  { path: "/ui/repos", name: "Repositories", section: "Knowledge", key: "o", needs: projectList, load: () => import("./pages/repos") },
  { path: "/ui/repos/{owner}/{repo}", needs: projectList, load: () => import("./pages/repo") },
  { path: "/ui/sessions", name: "Sessions", section: "Insight", key: "s", needs: sessionList, load: () => import("./pages/sessions") },
  { path: "/ui/sessions/{id}", needs: sessionList, load: () => import("./pages/session") },
];
