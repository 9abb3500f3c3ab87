// What agents are told: prompts by their place, and the variables in them.
import {
  configDelete,
  configList,
  configSet,
  systemPromptGet,
  systemPromptSet,
  templateList,
  type PromptVariable,
} from "../client.gen";
import { useList, useOne } from "../list";
import { query, setQuery } from "../route";
import { useRepos, whole } from "../whole";
import { inert } from "../ui/ansi";
import { Form } from "../ui/form";
import { Cards, Choice, of, Text } from "../ui/inputs";
import { Act, Coming, Fact, Facts } from "../ui/parts";
import { Time } from "../ui/time";

export type Row<T> = T & { id: string };

const scopes = [
  ["account", "the account"],
  ["repo", "a repository"],
  ["template", "a template"],
] as const;
type Scope = (typeof scopes)[number][0];

// usePlaces are the places that a text may hold for: the account, a repository, a template.
function usePlaces(): (readonly [string, string])[] {
  const repos = useRepos();
  const templates = useOne("templates", (signal) =>
    whole((cursor) => templateList({ cursor, per_page: 100 }, { signal })),
  );
  return [
    ["account:", "the account"],
    ...(repos.value.value?.data ?? []).map((r) => ["repo:" + r.id, "repository " + r.full_name] as const),
    ...(templates.value.value?.data ?? []).map((t) => ["template:" + t.name, "template " + t.name] as const),
  ];
}

const parse = (place: string) => ({
  scope: place.slice(0, place.indexOf(":")) as Scope,
  ref: place.slice(place.indexOf(":") + 1) || undefined,
});

export function Prompts() {
  const places = usePlaces(),
    place = query().get("place") ?? "account:";
  return (
    <>
      <p class="dim">
        Runs are told all that hold for them, from the next one on: the account's, the repository's, the template's, and
        that of whoever filed the task (<a href="/ui/settings">yours</a>). {"{{name}}"} is a variable.
      </p>
      <Choice
        name="place"
        label="System prompt of"
        wrong={() => undefined}
        value={place}
        all={places}
        onPick={(v) => setQuery({ place: v === "account:" ? "" : v })}
      />
      <Prompt key={place} place={place} />
    </>
  );
}

function Prompt(p: { place: string }) {
  const at = parse(p.place),
    one = useOne(p.place, (signal) => systemPromptGet(at, { signal })),
    v = one.value.value;
  if (!v) return <Coming of={one} />;
  return (
    <>
      <Facts>
        <Fact name="Last changed">
          <Time at={v.updated_at} />
        </Fact>
      </Facts>
      <Form
        call={systemPromptSet}
        submit="Save"
        said="Saved. Runs are told it from the next one on."
        keep
        done={() => void one.load()}
        read={(f) => ({ ...at, prompt: String(f.get("prompt") ?? "") })}
      >
        {(wrong) => (
          <Text
            name="prompt"
            label="Text"
            hint="empty: none. No secrets: every agent reads it"
            wrong={wrong}
            rows={12}
            value={v.prompt}
          />
        )}
      </Form>
    </>
  );
}

export function Variables() {
  const places = usePlaces();
  const list = useList<Row<PromptVariable>>("variables", async (cursor, signal) => {
    const page = await configList({ cursor, per_page: 100 }, { signal });
    return { ...page, data: page.data.map((v) => ({ ...v, id: [v.scope, v.ref, v.key].join("/") })) };
  });
  const nameOf = (v: PromptVariable) => places.find(([x]) => x === `${v.scope}:${v.ref ?? ""}`)?.[1] ?? v.scope;
  return (
    <>
      <p class="dim">
        A variable stands in system prompts as {"{{name}}"} and is filled in when a run begins. Everybody in the account
        and every agent can read it: keep secrets under <a href="/ui/settings/secrets">Secrets</a>.
      </p>
      <Cards
        list={list}
        label="Prompt variables"
        empty="There is no variable."
        row={(v) => (
          <>
            <div>
              <p>
                <code>{`{{${v.key}}}`}</code>{" "}
                <span class="dim">
                  of {nameOf(v)}, <Time at={v.updated_at} />
                </span>
              </p>
              <p>{inert(v.value)}</p>
            </div>
            <div class="acts">
              <Act
                call={configDelete}
                input={{ scope: v.scope, key: v.key, ref: v.ref ?? undefined }}
                confirm="Delete it? Prompts that use it keep the placeholder as it is written."
                done={() => {
                  void list.load();
                  return "Deleted.";
                }}
              >
                Delete
              </Act>
            </div>
          </>
        )}
      />
      <h2>Set a variable</h2>
      <Form
        call={configSet}
        submit="Set"
        said="Set."
        done={() => void list.load()}
        read={(f) => ({
          ...parse(of(f, "place") ?? "account:"),
          key: of(f, "key") ?? "",
          value: String(f.get("value") ?? ""),
        })}
      >
        {(wrong) => (
          <>
            <Choice
              name="place"
              label="Holds for"
              wrong={(x) => wrong("ref") ?? wrong("scope") ?? wrong(x)}
              value="account:"
              all={places}
            />
            <Text name="key" label="Name" wrong={wrong} need />
            <Text name="value" label="Value" wrong={wrong} rows={2} />
          </>
        )}
      </Form>
    </>
  );
}
