// The events of a run as lines: what the agent says, thinks and does, what programs
// print, edits as differences, tokens, and what the box says.
import { Lines } from "./lines";

export type RunEvent = { kind: string; data?: any; seq?: number; t?: string };
export type Step = { line: number; title: string; at: string | undefined };

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
      default: return this.add("meta", [e.kind, d.agent, d.model, d.isolation, d.outcome, d.failure_kind, typeof d.base === "string" ? d.base.slice(0, 10) : ""].filter(Boolean).join(" "));
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
      case "plan": return this.add("meta", "plan: " + (d.entries ?? []).map((x: any) => `${x.status === "completed" ? "✓" : "·"} ${x.content}`).join("; "));
    }
  }

  private content(d: any) {
    const id = String(d.toolCallId ?? "");
    for (const c of d.content ?? []) {
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

const textOf = (c: any): string => typeof c?.text === "string" ? c.text : "";
const lead = (s: string, with_: string) => s.replace(/\n$/, "").split("\n").map((l) => with_ + l).join("\n");
