// The events of a run as lines: what the agent says, thinks and does, what programs
// print, edits as differences, tokens, and what the box says.
import { Lines } from "./lines";
import { words } from "./status";
import { span } from "./time";
import { table } from "../own";

export type RunEvent = { kind: string; data?: any; seq?: number; t?: string };

// A Step is something that the agent did, or a while in which nothing happened. line is
// the number of its line; from and to are in milliseconds, undefined where they are not known.
// of is the entry of its title; runs, that the title is a command line, in place of which none comes that is less.
export type Step = {
  line: number;
  title: string;
  from?: number;
  to?: number;
  idle?: boolean;
  done?: boolean;
  of?: number;
  edit?: boolean;
  runs?: boolean;
};

// A Message is what somebody said to the agent, and what became of it. Those that were sent
// from here are own, those of which an event tells have an entry.
export type Message = { id: string; text: string; state: Fate; reply: string; own?: boolean; entry?: number };
export type Fate = "replied" | "queued" | "read" | "unconfirmed" | "dropped";

export const fates: Record<Fate, string> = {
  replied: "It answered.",
  queued: "Held for its next turn.",
  read: "It has read it.",
  unconfirmed: "Its box has not confirmed it yet.",
  dropped: "The run ended before it could read it.",
};

// kinds are the kinds of lines by what they are for people.
export const kinds: Record<string, string[]> = table({
  says: ["say"],
  thinks: ["think"],
  does: ["tool", "done", "fail"],
  output: ["out"],
  edits: ["file", "add", "del"],
  messages: ["user", "fate"],
  tokens: ["use"],
  system: ["meta", "bad", "idle"],
});

// quiet is after how many milliseconds without a word, while no tool runs, time is idle.
const quiet = 60_000;

// lacking names what a checkout does not have.
function lacking(d: any): string {
  const all = Array.isArray(d.lacks) ? d.lacks : [];
  if (!all.length) return "";
  const more = Number(d.more_lacks) || 0;
  return `; not in it: ${all.map((l: any) => `${l.path} (${l.reason})`).join(", ")}${more ? ` and ${more} others` : ""}`;
}

// environment tells what became of the environment of a run.
function environment(d: any): string {
  switch (d.state) {
    case "making":
      return "the prepare script runs";
    case "ready":
      return `the prepare script has made the environment ready in ${(Number(d.took_ms) / 1000).toFixed(1)} s`;
    case "kept":
      return "the environment is there from an earlier run";
    case "skipped":
      return `no environment: ${d.why ?? ""}`;
  }
  return `the environment is not ready: ${d.why ?? ""}`;
}

// said is an event of a box in words, those of the command line.
function said(kind: string, d: any): string {
  const sha = (v: unknown) => String(v ?? "").slice(0, 10),
    why = d.failure_kind ? ", " + words(String(d.failure_kind)) : "";
  switch (kind) {
    case "run.accepted":
      return "claimed and accepted by the box";
    case "environment":
      return environment(d);
    case "prepared":
      return `checked out ${sha(d.base)}${d.resume ? ", saved work of an earlier attempt" : ""}${lacking(d)}`;
    case "started":
      return `agent ${[d.agent, d.version].filter(Boolean).join(" ")} started${d.model ? ", model " + d.model : ""}, isolation ${d.isolation || "none"}`;
    case "git.pushed":
      return `pushed ${sha(d.sha)} to ${String(d.ref ?? "").replace("refs/heads/", "")}${d.wip ? " (unfinished work)" : ""}`;
    case "ask.filed":
      return `filed an ask: ${d.title ?? ""}`;
    case "action.proposed":
      return `proposes to ${d.kind ?? "act"} #${d.pull ?? "?"}: ${d.why ?? ""}`;
    case "page.proposed":
      return `proposes a text for the page ${d.slug ?? "?"}: ${d.why ?? ""}`;
    case "blocker.declared":
      return `needs a person: ${d.question || words(String(d.kind ?? ""))}`;
    case "outbox.refused":
      return `${d.file ?? "a declaration"} was refused: ${d.reason ?? ""}`;
    case "command.refused":
      return `the box refused a command: ${d.reason ?? d.kind ?? ""}`;
    case "run.parked":
      return "waits for a person";
    case "run.resumed":
      return "goes on";
    case "run.halting":
      return "stopping the agent" + why;
    case "run.lease_lost":
      return "the box lost its lease";
    case "output.truncated":
      return "some output was left out";
    case "run.finished":
      return `finished: ${d.state ?? d.outcome ?? ""}${why}${d.error ? ": " + d.error : ""}`;
  }
  return [kind, d.outcome, d.failure_kind].filter(Boolean).join(" ");
}

export class Transcript extends Lines {
  steps: Step[] = [];
  now = ""; // the newest thing the agent does
  readonly messages = new Map<string, Message>();
  private tools = new Map<string, Step>();
  private printed = new Map<string, string>(); // what a tool has printed so far
  private ended = false;
  private last = NaN; // when the event before was

  override clear() {
    super.clear();
    this.steps = [];
    this.now = "";
    this.messages.clear();
    this.tools.clear();
    this.printed.clear();
    this.last = NaN;
    this.ended = false;
    this.clock = NaN;
  }

  event(e: RunEvent): void {
    const d = e.data ?? {},
      t = Date.parse(e.t ?? "");
    this.clock = t;
    this.idle(t);
    switch (e.kind) {
      case "agent.update":
        return this.update(d, t);
      case "usage":
        return this.add("use", `tokens: ${d.input_tokens ?? 0} in, ${d.output_tokens ?? 0} out`);
      case "user.message":
        return this.message(d);
      case "preparing":
      case "agent.permission":
        return; // what follows says it
      case "run.finished":
        this.add(d.state === "failed" || d.state === "lost" ? "bad" : "meta", said(e.kind, d));
        return this.over(t);
      default:
        return this.add("meta", said(e.kind, d));
    }
  }

  // sent notes a message from here, of which an event tells sooner or later.
  sent(id: string, text: string) {
    const m = this.messages.get(id);
    if (m) m.own = true;
    else this.messages.set(id, { id, text, state: this.ended ? "dropped" : "unconfirmed", reply: "", own: true });
    this.changed();
  }

  // over ends what goes on: nobody reads a message any more.
  over(t = NaN) {
    if (this.ended) return;
    this.ended = true;
    this.ends(t);
    for (const m of this.messages.values())
      if (m.state === "queued" || m.state === "unconfirmed") this.fate(m, "dropped");
    this.changed();
  }

  private message(d: any) {
    const id = String(d.id ?? ""),
      m: Message = this.messages.get(id) ?? { id, text: "", state: "unconfirmed", reply: "" };
    this.messages.set(id, m);
    if (typeof d.text === "string" && d.text) m.text = d.text;
    if (typeof d.reply === "string") m.reply = d.reply;
    if (m.entry === undefined) {
      this.add("user", "message: " + m.text);
      this.add("fate", m.state);
      m.entry = this.newest;
    }
    if (d.state === "queued" || d.state === "dropped") this.fate(m, d.state);
    else if (d.state === "delivered") this.fate(m, "read");
    else if (d.state === "read") this.fate(m, m.reply ? "replied" : "read");
  }

  private fate(m: Message, state: Fate) {
    m.state = state;
    if (m.entry !== undefined) this.set(m.entry, `${state}: ${m.reply || fates[state]}`);
  }

  // idle notes a while in which nothing happened before an event at t.
  private idle(t: number) {
    const from = this.last,
      step = this.steps[this.steps.length - 1];
    if (t) this.last = t;
    if (!(t - from >= quiet) || (step && step.to === undefined)) return;
    this.steps.push({ line: this.size, title: "idle", from, to: t, idle: true });
    this.add("idle", `${span((t - from) / 1000).trim()} without a word`);
  }

  // ends has the newest step end, if nothing has told yet that it did.
  private ends(t: number) {
    const step = this.steps[this.steps.length - 1];
    if (step && step.to === undefined) step.to = t;
  }

  private update(d: any, t: number): void {
    switch (d.sessionUpdate) {
      case "agent_message_chunk":
        this.ends(t);
        return this.add("say", textOf(d.content), true);
      case "agent_thought_chunk":
        this.ends(t);
        return this.add("think", textOf(d.content), true);
      case "user_message_chunk":
        return this.add("user", textOf(d.content), true);
      case "tool_call": {
        this.ends(t);
        const runs = commandOf(d);
        this.now = runs || String(d.title ?? d.kind ?? "works");
        const step: Step = { line: this.size, title: this.now, edit: d.kind === "edit", runs: !!runs };
        if (t) step.from = t;
        this.steps.push(step);
        this.tools.set(String(d.toolCallId ?? ""), step);
        this.add("tool", named(step));
        step.of = this.newest;
        return this.content(d, t);
      }
      case "tool_call_update":
        this.title(d, this.tools.get(String(d.toolCallId ?? "")));
        return this.content(d, t);
      case "plan":
        return this.add(
          "meta",
          "plan: " +
            objects(d.entries)
              .map((x) => `${x.status === "completed" ? "✓" : "·"} ${x.content}`)
              .join("; "),
        );
    }
  }

  // title takes in what some agents tell of a tool only later: what it runs, or a longer name.
  private title(d: any, step: Step | undefined) {
    const runs = commandOf(d),
      title = runs || (typeof d.title === "string" ? d.title : "");
    if (!step || !title || title === step.title || (step.runs && !runs)) return;
    if (this.now === step.title) this.now = title;
    step.title = title;
    step.runs = !!runs;
    if (d.kind === "edit") step.edit = true;
    if (step.of === this.newest) return this.replace(named(step));
    step.line = this.size; // other things have been told since
    this.add("tool", named(step));
    step.of = this.newest;
  }

  private content(d: any, t: number) {
    const id = String(d.toolCallId ?? ""),
      piece = d._meta?.terminal_output_delta?.data;
    if (typeof piece === "string") {
      this.printed.set(id, (this.printed.get(id) ?? "") + piece);
      this.add("out", piece, true);
    }
    for (const c of objects(d.content)) {
      if (c.type === "diff") {
        this.add("file", String(c.path ?? ""));
        if (c.oldText) this.add("del", lead(String(c.oldText), "- "));
        if (c.newText) this.add("add", lead(String(c.newText), "+ "));
        continue;
      }
      // An update repeats what the tool printed before.
      const all = textOf(c.content),
        had = this.printed.get(id) ?? "";
      const same = all.trimEnd() === had.trimEnd(),
        fresh = same ? "" : had && all.startsWith(had) ? all.slice(had.length) : all;
      this.printed.set(id, all);
      if (fresh) this.add("out", fresh, true);
    }
    if (d.status === "completed" || d.status === "failed") this.done(d, this.tools.get(id), t);
  }

  // done says how a tool ended: how long it took and what it ended with, where that is known.
  private done(d: any, step: Step | undefined, t: number) {
    if (step?.done) return;
    const exit = exitOf(d),
      took = step?.from !== undefined && t ? (t - step.from) / 1000 : 0,
      bad = d.status === "failed" || !!exit;
    if (step) {
      step.done = true;
      step.to = t;
    }
    if (!bad && exit === undefined && took < 1) return;
    const how = [took >= 1 ? "after " + span(took).trim() : "", exit === undefined ? "" : "exit " + exit];
    this.add(bad ? "fail" : "done", [bad ? "failed" : "done", ...how].filter(Boolean).join(", "));
  }
}

// named is the line of a step.
const named = (s: Step) => `${s.edit ? "±" : "$"} ${s.title}`;

// commandOf is the command line that a tool runs, where an agent tells it.
function commandOf(d: any): string {
  const of = d.rawInput?.command;
  return typeof of === "string" ? of : Array.isArray(of) ? of.filter((x) => typeof x === "string").join(" ") : "";
}

// exitOf is what a program ended with, as agents tell it.
function exitOf(d: any): number | undefined {
  const of = [d._meta?.terminal_exit?.exit_code, d.rawOutput?.exit_code, d.rawOutput?.exitCode];
  return of.find((x) => Number.isInteger(x));
}

// objects are those of a list; what an agent sends in another form is left out.
const objects = (v: unknown): any[] => (Array.isArray(v) ? v.filter((x) => x && typeof x === "object") : []);
const textOf = (c: any): string => (typeof c?.text === "string" ? c.text : "");
const lead = (s: string, with_: string) =>
  s
    .replace(/\n$/, "")
    .split("\n")
    .map((l) => with_ + l)
    .join("\n");
