// What the palette finds: pages, actions, the manual, capabilities, and objects by their
// titles, by their names, and by a part of their ids.
import {
  askList,
  blockerList,
  boxList,
  escalationList,
  planList,
  prAll,
  projectList,
  sessionList,
  taskList,
} from "./client.gen";
import { calls } from "./calls";
import { address, docs, plain, search } from "./manual";
import type { Entry } from "./pages";
import { openNewTask } from "./pages/newtask";
import { table } from "./own";
import { go } from "./route";
import { may } from "./session";
import { whole } from "./whole";
import { inert } from "./ui/ansi";
import { actions } from "./ui/actions";
import { offer, type Command } from "./ui/palette";

type Ask = (text: string, off: AbortSignal) => Promise<Command[]>;
type Row = Parameters<typeof may>[0];

// to is a command that shows a page, under a text that people wrote.
const to = (kind: string, name: string, at: string): Command => ({
  name: inert(name),
  hint: kind,
  run: () => go("/ui/" + at),
});
// byText asks for objects whose titles or names contain a text of two letters or more.
const byText = (row: Row, ask: Ask) => offer(async (text, off) => (text.length < 2 || !may(row) ? [] : ask(text, off)));
// byPart asks for objects by a part of their ids, which people copy from mails and
// terminals.
const byPart = (row: Row, ask: Ask) =>
  offer(async (text, off) => {
    const part = text.trim().toLowerCase();
    return !/^[0-9a-f][0-9a-f-]{3,35}$/.test(part) || !may(row) ? [] : found(await ask(part, off));
  });
const found = (all: Command[], worth = 1) => all.map((c) => ({ ...c, found: true, worth }));

// The manual and the capabilities come after the pages, actions and objects, and lines of
// the manual's text after all.
const manual = -1000,
  lines = -2000;

// also are the words by which people look for a page that is called otherwise.
const also: Record<string, string> = table({
  "/ui/approvals": "approve skip decline merge",
  "/ui/boxes": "machines runners enroll",
  "/ui/settings": "dark light theme shortcuts leave",
  "/ui/settings/keys": "models prices anthropic",
  "/ui/settings/members": "invite people roles",
  "/ui/settings/tokens": "api personal access",
  "/ui/usage": "spend cost caps budget",
});

// start fills the palette. listed are the pages that the person may see.
export function start(listed: () => Entry[]) {
  offer((text) => actions(true).slice(0, text ? 100 : 5));
  offer(() => [
    ...listed().map((p) => ({
      name: p.name!,
      hint: p.section ? "Go to, " + p.section : "Go to",
      also: also[p.path],
      run: () => go(p.path === "/ui" ? "/ui/" : p.path),
    })),
    { name: "New task or ask", hint: "c", run: openNewTask },
  ]);

  byText(taskList, async (q, signal) =>
    (await taskList({ q, per_page: 8 }, { signal })).data.map((t) => to("Task in " + t.repo, t.title, "tasks/" + t.id)),
  );
  byText(prAll, async (q, signal) =>
    (await prAll({ q, per_page: 5 }, { signal })).data.map((r) =>
      to(`Pull request ${r.repo}#${r.number}`, r.title, "prs/" + r.id),
    ),
  );
  byText(projectList, async (q, signal) =>
    (await projectList({ q, per_page: 5 }, { signal })).data.map((r) =>
      to("Repository", r.full_name, "repos/" + r.full_name),
    ),
  );
  byText(boxList, async (q, signal) =>
    (await whole((cursor) => boxList({ cursor, per_page: 100 }, { signal }))).data
      .filter((b) => b.name.toLowerCase().includes(q.toLowerCase()))
      .slice(0, 5)
      .map((b) => to("Box", b.name, "boxes/" + b.id)),
  );
  byText(askList, async (q, signal) =>
    (await askList({ q, per_page: 5 }, { signal })).data.map((a) => to("Ask", a.title, "asks/" + a.id)),
  );
  byText(planList, async (q, signal) =>
    (await planList({ q, per_page: 5 }, { signal })).data.map((p) => to("Plan", p.title, "plans/" + p.id)),
  );

  byPart(taskList, async (p, signal) =>
    (await taskList({ filter: ["id:" + p], per_page: 3 }, { signal })).data.map((t) =>
      to("Task in " + t.repo, t.title, "tasks/" + t.id),
    ),
  );
  byPart(prAll, async (p, signal) =>
    (await prAll({ filter: ["id:" + p], per_page: 3 }, { signal })).data.map((r) =>
      to(`Pull request ${r.repo}#${r.number}`, r.title, "prs/" + r.id),
    ),
  );
  byPart(askList, async (p, signal) =>
    (await askList({ filter: ["id:" + p], per_page: 3 }, { signal })).data.map((a) =>
      to("Ask", a.title, "asks/" + a.id),
    ),
  );
  byPart(planList, async (p, signal) =>
    (await planList({ id: p, per_page: 3 }, { signal })).data.map((x) => to("Plan", x.title, "plans/" + x.id)),
  );
  byPart(blockerList, async (p, signal) =>
    (await blockerList({ filter: ["id:" + p], per_page: 3 }, { signal })).data.map((b) =>
      to("Blocker", b.question, "blockers/" + b.id),
    ),
  );
  byPart(escalationList, async (p, signal) =>
    (await escalationList({ filter: ["id:" + p], per_page: 3 }, { signal })).data.map((e) =>
      to("Escalation", e.title, "escalations/" + e.id),
    ),
  );
  byPart(boxList, async (p, signal) =>
    (await boxList({ filter: ["id:" + p], per_page: 3 }, { signal })).data.map((b) =>
      to("Box", b.name, "boxes/" + b.id),
    ),
  );
  byPart(sessionList, async (p, signal) =>
    (await sessionList({ filter: ["id:" + p], limit: 3 }, { signal })).data.map((s) =>
      to("Session", s.kind + " " + (s.repo ?? ""), "sessions/" + s.id),
    ),
  );

  // OWNER/NAME#NUMBER is a pull request; NAME#NUMBER and #NUMBER are those of some repositories.
  offer(async (text, off) => {
    const m = /^\s*(?:([^/#\s]+)\/)?([^/#\s]*)#([1-9][0-9]{0,8})\s*$/.exec(text);
    if (!m || !may(prAll)) return [];
    const [, owner, name, number] = m,
      repos = owner
        ? [owner + "/" + name]
        : (await projectList({ ...(name ? { q: name } : {}), per_page: 8 }, { signal: off })).data.map(
            (r) => r.full_name,
          ),
      pages = await Promise.all(
        repos.map((r) => prAll({ filter: ["repo:" + r, "number:" + number], per_page: 1 }, { signal: off })),
      );
    return found(
      pages.flatMap((p) => p.data.map((r) => to(`Pull request ${r.repo}#${r.number}`, r.title, "prs/" + r.id))),
    );
  });

  offer(async (text) =>
    text.length < 2
      ? []
      : (await docs()).flatMap((d) => [
          { name: d.title, hint: "Manual", worth: manual, run: () => go(address(d.name)) },
          ...d.headings.map((h) => ({
            name: plain(h.text),
            hint: "Manual: " + d.title,
            worth: manual,
            run: () => go(address(d.name, h.id)),
          })),
        ]),
  );
  offer(async (text) =>
    text.length < 3
      ? []
      : found(
          (await search(text, 3)).map((h) => ({
            name: h.line,
            hint: `Manual: ${h.doc.title}${h.heading ? ", " + plain(h.heading.text) : ""}`,
            run: () => go(address(h.doc.name, h.heading?.id)),
          })),
          lines,
        ),
  );
  offer(async (text) =>
    text.length < 3
      ? []
      : (await calls())
          .filter((c) => may(c))
          .map((c) => ({
            name: c.summary,
            hint: "Call " + c.id,
            worth: manual,
            run: () => go("/ui/call/" + c.id),
          })),
  );
}
