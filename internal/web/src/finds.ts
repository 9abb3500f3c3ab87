// What the palette finds: pages, actions, the manual, capabilities, and objects by their
// titles, by their names, and by a part of their ids.
import { askList, blockerList, boxList, escalationList, planList, prAll, projectList, sessionList, taskList } from "./client.gen";
import { calls } from "./calls";
import { address, docs, plain } from "./manual";
import type { Entry } from "./pages";
import { openNewTask } from "./pages/newtask";
import { go } from "./route";
import { may } from "./session";
import { inert } from "./ui/ansi";
import { actions } from "./ui/actions";
import { offer, type Command } from "./ui/palette";

type Ask = (text: string, off: AbortSignal) => Promise<Command[]>;
type Row = Parameters<typeof may>[0];

// to is a command that shows a page, under a text that people wrote.
const to = (kind: string, name: string, at: string): Command => ({ name: inert(name), hint: kind, run: () => go("/ui/" + at) });
// byText asks for objects whose titles or names contain a text of two letters or more.
const byText = (row: Row, ask: Ask) => offer(async (text, off) => text.length < 2 || !may(row) ? [] : ask(text, off));
// byPart asks for objects by a part of their ids, which people copy from mails and
// terminals.
const byPart = (row: Row, ask: Ask) => offer(async (text, off) => {
  const part = text.trim().toLowerCase();
  return !/^[0-9a-f][0-9a-f-]{3,35}$/.test(part) || !may(row) ? [] : found(await ask(part, off));
});
const found = (all: Command[]) => all.map((c) => ({ ...c, found: true }));

// start fills the palette. listed are the pages that the person may see.
export function start(listed: () => Entry[]) {
  offer((text) => actions(true).slice(0, text ? 100 : 5));
  offer(() => [...listed().map((p) => ({ name: p.name!, hint: "Go to", run: () => go(p.path === "/ui" ? "/ui/" : p.path) })), { name: "New task or ask", hint: "c", run: openNewTask }]);

  byText(taskList, async (q, signal) => (await taskList({ q, per_page: 8 }, { signal })).data.map((t) => to("Task in " + t.repo, t.title, "tasks/" + t.id)));
  byText(prAll, async (q, signal) => (await prAll({ q, per_page: 5 }, { signal })).data.map((r) => to(`Pull request ${r.repo}#${r.number}`, r.title, "prs/" + r.id)));
  byText(projectList, async (q, signal) => (await projectList({ q, per_page: 5 }, { signal })).data.map((r) => to("Repository", r.full_name, "repos/" + r.full_name)));
  byText(boxList, async (q, signal) => (await boxList({ per_page: 100 }, { signal })).data
    .filter((b) => b.name.toLowerCase().includes(q.toLowerCase())).slice(0, 5).map((b) => to("Box", b.name, "boxes/" + b.id)));
  byText(askList, async (q, signal) => (await askList({ q, per_page: 5 }, { signal })).data.map((a) => to("Ask", a.title, "asks/" + a.id)));
  byText(planList, async (q, signal) => (await planList({ q, per_page: 5 }, { signal })).data.map((p) => to("Plan", p.title, "plans/" + p.id)));

  byPart(taskList, async (p, signal) => (await taskList({ filter: ["id:" + p], per_page: 3 }, { signal })).data.map((t) => to("Task in " + t.repo, t.title, "tasks/" + t.id)));
  byPart(prAll, async (p, signal) => (await prAll({ filter: ["id:" + p], per_page: 3 }, { signal })).data.map((r) => to(`Pull request ${r.repo}#${r.number}`, r.title, "prs/" + r.id)));
  byPart(askList, async (p, signal) => (await askList({ filter: ["id:" + p], per_page: 3 }, { signal })).data.map((a) => to("Ask", a.title, "asks/" + a.id)));
  byPart(planList, async (p, signal) => (await planList({ id: p, per_page: 3 }, { signal })).data.map((x) => to("Plan", x.title, "plans/" + x.id)));
  byPart(blockerList, async (p, signal) => (await blockerList({ filter: ["id:" + p], per_page: 3 }, { signal })).data.map((b) => to("Blocker", b.question, "blockers/" + b.id)));
  byPart(escalationList, async (p, signal) => (await escalationList({ filter: ["id:" + p], per_page: 3 }, { signal })).data.map((e) => to("Escalation", e.title, "escalations/" + e.id)));
  byPart(boxList, async (p, signal) => (await boxList({ filter: ["id:" + p], per_page: 3 }, { signal })).data.map((b) => to("Box", b.name, "boxes/" + b.id)));
  byPart(sessionList, async (p, signal) => (await sessionList({ filter: ["id:" + p], limit: 3 }, { signal })).data.map((s) => to("Session", s.kind + " " + (s.repo ?? ""), "sessions/" + s.id)));

  // OWNER/NAME#NUMBER is a pull request.
  offer(async (text, off) => {
    const m = /^\s*([^/#\s]+\/[^/#\s]+)#([1-9][0-9]{0,8})\s*$/.exec(text);
    return !m || !may(prAll) ? [] : found((await prAll({ filter: ["repo:" + m[1], "number:" + m[2]], per_page: 1 }, { signal: off })).data.map((r) => to("Pull request", r.title, "prs/" + r.id)));
  });

  offer(async (text) => text.length < 2 ? [] : (await docs()).flatMap((d) => [{ name: d.title, hint: "Manual", run: () => go(address(d.name)) },
    ...d.headings.map((h) => ({ name: plain(h.text), hint: "Manual: " + d.title, run: () => go(address(d.name, h.id)) }))]));
  offer(async (text) => text.length < 3 ? [] : (await calls()).filter((c) => may(c)).map((c) => ({ name: c.summary, hint: "Call " + c.id, run: () => go("/ui/call/" + c.id) })));
}
