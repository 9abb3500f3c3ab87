// Templates: which agent and model carry a task out, what agents are told, and the
// variables of those texts.
import { useState } from "preact/hooks";
import { providers, templateDelete, templateList, templateSet, type Template } from "../client.gen";
import { useList } from "../list";
import { query, setQuery } from "../route";
import { addressed } from "../cards/keyform";
import { useFresh } from "../ui/every";
import { inert } from "../ui/ansi";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { gate } from "../ui/gate";
import { Cards, Choice, number, of, pairs, Text, unpaired } from "../ui/inputs";
import { Act, Head, Tabs } from "../ui/parts";
import { span } from "../ui/time";
import { Lanes } from "../cards/lanes";
import { type Row, Prompts, Variables } from "../cards/prompts";

const tabs = ["templates", "prompts", "variables"];

export default function Templates() {
  const tab = query().get("tab") ?? "templates";
  return (
    <>
      <Head title="Templates">
        <Tabs label="Parts" all={tabs} at={tab} to={(t) => setQuery({ tab: t === "templates" ? "" : t, place: "" })} />
      </Head>
      {tab === "prompts" ? <Prompts /> : tab === "variables" ? <Variables /> : <All />}
    </>
  );
}

function All() {
  const list = useList<Row<Template>>("templates", async (cursor, signal) => {
    const page = await templateList({ cursor, per_page: 100 }, { signal });
    return { ...page, data: page.data.map((t) => ({ ...t, id: t.name })) };
  });
  useFresh(30, list);
  const [open, set] = useState<Template | "new">(),
    beside = query().get("lanes") ?? "";
  return (
    <>
      <p class="dim">
        A task names a template; one that names none gets <code>default</code>.
      </p>
      <Cards
        list={list}
        label="Templates"
        empty="There is none."
        row={(t) => (
          <>
            <div>
              <p>
                <strong>{t.name}</strong> <span class="dim">{t.created_at ? "" : "as it comes"}</span>
              </p>
              <p class="dim">
                {[
                  t.agent,
                  t.provider && `key of ${t.provider}`,
                  t.model && inert(t.model),
                  `isolation ${t.isolation}`,
                  `at most ${span(t.timeout).trim()}`,
                  t.challenger && `${t.share} of 100 of its tasks go to ${inert(t.challenger)}`,
                ]
                  .filter(Boolean)
                  .join(" · ")}
              </p>
              {beside === t.name && <Lanes of={t.name} />}
            </div>
            <div class="acts">
              {(t.challenger || beside === t.name) && (
                <button
                  type="button"
                  aria-expanded={beside === t.name}
                  onClick={() => setQuery({ lanes: beside === t.name ? "" : t.name })}
                >
                  Compare
                </button>
              )}
              {t.created_at && (
                <Act
                  call={templateDelete}
                  input={{ name: t.name }}
                  confirm={
                    t.name === "default"
                      ? "Set the default back to what it was at first?"
                      : "Delete it? Tasks that wait and name it are held until there is one of its name again."
                  }
                  done={() => {
                    void list.load();
                    return "Deleted.";
                  }}
                >
                  {t.name === "default" ? "Reset" : "Delete"}
                </Act>
              )}
              <button type="button" onClick={() => set(t)}>
                Edit
              </button>
            </div>
          </>
        )}
      />
      <p>
        <button type="button" class="main" {...gate(templateSet, () => set("new"))}>
          New template
        </button>
      </p>
      {open && (
        <Edit
          of={open === "new" ? undefined : open}
          close={(changed) => {
            set(undefined);
            if (changed) void list.load();
          }}
        />
      )}
    </>
  );
}

function Edit(p: { of: Template | undefined; close: (changed: boolean) => void }) {
  const t = p.of,
    [agent, setAgent] = useState<string>(t?.agent ?? "builtin"),
    [provider, setProvider] = useState<string>(t?.provider ?? "");
  return (
    <Dialog title={t ? "Template " + t.name : "New template"} class="wide" close={() => p.close(false)}>
      <Form
        call={templateSet}
        submit="Save"
        said="Saved."
        keep
        done={() => p.close(true)}
        read={(f) => ({
          name: t?.name ?? of(f, "name") ?? "",
          agent: agent as "builtin",
          model: of(f, "model"),
          provider: (provider || undefined) as "openai" | undefined,
          base_url: of(f, "base_url"),
          command: agent === "command" ? (of(f, "command") ?? "").split("\n").filter(Boolean) : undefined,
          api: agent === "builtin" ? (of(f, "api") as "chat" | undefined) : undefined,
          isolation: of(f, "isolation") as "best" | undefined,
          timeout: number(f, "timeout"),
          options: pairs(f, "options"),
          challenger: of(f, "challenger"),
          share: number(f, "share"),
        })}
      >
        {(wrong) => (
          <>
            {!t && <Text name="name" label="Name" hint="lower-case words" wrong={wrong} need focus />}
            <Choice
              name="agent"
              label="Agent"
              hint="the program that works"
              wrong={wrong}
              value={agent}
              all={["builtin", "claude", "codex", "opencode", "gemini", "qwen", "goose", "command"]}
              onPick={setAgent}
            />
            {agent === "command" && (
              <Text
                name="command"
                label="Command"
                hint="one argument a line"
                wrong={wrong}
                rows={3}
                code
                value={t?.command.join("\n")}
              />
            )}
            <Choice
              name="provider"
              label="Key"
              hint="of which provider"
              wrong={wrong}
              value={provider}
              all={[["", "the first that fits"], ...providers]}
              onPick={setProvider}
            />
            {addressed(provider) && (
              <Text name="base_url" label="Address" wrong={wrong} type="url" value={t?.base_url} />
            )}
            <Text name="model" label="Model" hint="empty: the agent's own choice" wrong={wrong} value={t?.model} />
            {agent === "builtin" && (
              <Choice
                name="api"
                label="API"
                wrong={wrong}
                value={t?.api || "chat"}
                all={["chat", "messages", "responses"]}
              />
            )}
            <Choice
              name="isolation"
              label="Isolation"
              wrong={wrong}
              value={t?.isolation ?? "best"}
              all={[["best", "the best the box has"], "bubblewrap", "landlock", "none"]}
            />
            <Text
              name="timeout"
              label="Time for a run"
              hint="seconds"
              wrong={wrong}
              value={t?.timeout ?? 3600}
              decimal
            />
            <Text
              name="options"
              label="Options"
              hint="name=value, one a line"
              wrong={wrong}
              rows={3}
              code
              value={unpaired(t?.options)}
            />
            <Text
              name="challenger"
              label="Challenger"
              hint="a template that gets a share of the tasks that name this one"
              wrong={wrong}
              value={t?.challenger}
            />
            <Text name="share" label="Share" hint="of 100 tasks" wrong={wrong} value={t?.share} decimal />
          </>
        )}
      </Form>
    </Dialog>
  );
}
