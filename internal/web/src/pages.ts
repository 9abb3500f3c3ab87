// The pages: address, place and name in the rail, the key after g, the capability
// without which there is nothing to see, and the code.
import type { Call } from "./api";
import { taskList } from "./client.gen";
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
];
