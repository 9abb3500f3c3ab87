// The events of a run as lines: what the agent says, thinks and does, what programs
// print, edits as differences, tokens, and what the box says.
import { Lines } from "./lines";
import { words } from "./status";

export type RunEvent = { kind: string; data?: any; seq?: number; t?: string };
export type Step = { line: number; title: string; at: string | undefined };

// said is an event of a box in words, those of the command line.
function said(kind: string, d: any): string {
  const sha = (v: unknown) => String(v ?? "").slice(0, 10), why = d.failure_kind ? ", " + words(String(d.failure_kind)) : "";
  switch (kind) {
    case "run.accepted": return "claimed and accepted by the box";
    case "prepared": return `checked out ${sha(d.base)}${d.resume ? ", saved work of an earlier attempt" : ""}`;
    case "started": return `agent ${[d.agent, d.version].filter(Boolean).join(" ")} started${d.model ? ", model " + d.model : ""}, isolation ${d.isolation || "none"}`;
    case "git.pushed": return `pushed ${sha(d.sha)} to ${String(d.ref ?? "").replace("refs/heads/", "")}${d.wip ? " (unfinished work)" : ""}`;
    case "ask.filed": return `filed an ask: ${d.title ?? ""}`;
    case "action.proposed": return `proposes to ${d.kind ?? "act"} #${d.pull ?? "?"}: ${d.why ?? ""}`;
    case "blocker.declared": return `needs a person: ${d.question || words(String(d.kind ?? ""))}`;
    case "outbox.refused": return `${d.file ?? "a declaration"} was refused: ${d.reason ?? ""}`;
    case "command.refused": return `the box refused a command: ${d.reason ?? d.kind ?? ""}`;
    case "run.parked": return "waits for a person";
    case "run.resumed": return "goes on";
    case "run.halting": return "stopping the agent" + why;
    case "run.lease_lost": return "the box lost its lease";
    case "output.truncated": return "some output was left out";
    case "run.finished": return `finished: ${d.state ?? d.outcome ?? ""}${why}${d.error ? ": " + d.error : ""}`;
  }
  return [kind, d.outcome, d.failure_kind].filter(Boolean).join(" ");
}

export class Transcript extends Lines {
  steps: Step[] = [];
  now = ""; // the newest thing the agent does
  private printed = new Map<string, string>(); // what a tool has printed so far

  event(e: RunEvent) {
    const d = e.data ?? {};
    switch (e.kind) {
      case "agent.update": return this.update(d, e.t);
      case "usage": return this.add("meta", `tokens: ${d.input_tokens ?? 0} in, ${d.output_tokens ?? 0} out`);
      case "message.sent": case "message.delivered": case "message.replied": return this.add("meta", e.kind.replace(".", " ") + (d.text ? ": " + d.text : ""));
      case "preparing": case "agent.permission": return; // what follows says it
      case "run.finished": return this.add(d.state === "failed" || d.state === "lost" ? "bad" : "meta", said(e.kind, d));
      default: return this.add("meta", said(e.kind, d));
    }
  }

  private update(d: any, t: string | undefined) {
    switch (d.sessionUpdate) {
      case "agent_message_chunk": return this.add("say", textOf(d.content), true);
      case "agent_thought_chunk": return this.add("think", textOf(d.content), true);
      case "user_message_chunk": return this.add("user", textOf(d.content), true);
      case "tool_call":
        this.now = String(d.title ?? d.kind ?? "works");
        this.steps.push({ line: this.lines.length, title: this.now, at: t });
        this.add("tool", `${d.kind === "edit" ? "±" : "$"} ${this.now}`);
        return this.content(d);
      case "tool_call_update": return this.content(d);
      case "plan": return this.add("meta", "plan: " + objects(d.entries).map((x) => `${x.status === "completed" ? "✓" : "·"} ${x.content}`).join("; "));
    }
  }

  private content(d: any) {
    const id = String(d.toolCallId ?? "");
    for (const c of objects(d.content)) {
      if (c.type === "diff") {
        this.add("meta", String(c.path ?? ""));
        if (c.oldText) this.add("del", lead(String(c.oldText), "- "));
        if (c.newText) this.add("add", lead(String(c.newText), "+ "));
        continue;
      }
      // An update repeats what the tool printed before.
      const all = textOf(c.content), had = this.printed.get(id) ?? "";
      const fresh = had && all.startsWith(had) ? all.slice(had.length) : all;
      this.printed.set(id, all);
      if (fresh) this.add("out", fresh, true);
    }
    if (d.status === "failed") this.add("bad", "failed");
  }
}

// objects are those of a list; what an agent sends in another form is left out.
const objects = (v: unknown): any[] => Array.isArray(v) ? v.filter((x) => x && typeof x === "object") : [];
const textOf = (c: any): string => typeof c?.text === "string" ? c.text : "";
const lead = (s: string, with_: string) => s.replace(/\n$/, "").split("\n").map((l) => with_ + l).join("\n");
