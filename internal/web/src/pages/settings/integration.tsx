// One source: where it sends, how what it sends is read, and what came of it.
import { useState } from "preact/hooks";
import {
  integrationDeliveries,
  integrationDisconnect,
  integrationGet,
  integrationMappingPreview,
  integrationMappingSet,
  integrationRotate,
  integrationUpdate,
  type MappingPreview,
  type Source,
  type SourceDelivery,
  type SourceMapping,
} from "../../client.gen";
import { said } from "../../api";
import { useList, useOne } from "../../list";
import { go, type PageProps } from "../../route";
import { inert } from "../../ui/ansi";
import { useEvery, useFresh } from "../../ui/every";
import { Form } from "../../ui/form";
import { Cards, lines, of, Once, pairs, Switch, Text, unpaired } from "../../ui/inputs";
import { Act, Code, Coming, Empty, Fact, Facts, Head } from "../../ui/parts";
import { Raw } from "../../ui/raw";
import { Status, words } from "../../ui/status";
import { Time } from "../../ui/time";
import { tell } from "../../ui/toast";
import { table } from "../../own";

const fates: Record<string, string> = table({ filed: "done", noop: "skipped", dropped: "dropped", ack: "ended" });

export default function Integration(p: PageProps) {
  const id = p.params.id!,
    one = useOne<Source>(id, (signal) => integrationGet({ id }, { signal })),
    s = one.value.value,
    [secret, setSecret] = useState("");
  const sent = useList<SourceDelivery>(id, (cursor, signal) =>
    integrationDeliveries({ id, cursor, per_page: 50 }, { signal }),
  );
  const again = () => {
    void one.load();
    void sent.load();
  };
  useEvery(10, () => void one.load(), [one]);
  useFresh(10, sent);
  if (!s)
    return (
      <>
        <Head title="Integration" />
        <Coming of={one} />
      </>
    );
  return (
    <>
      <Head title={inert(s.name)}>
        <Status
          of={s.state === "ready" ? "enabled" : "held"}
          say={s.state === "ready" ? "ready" : "awaits its secret"}
        />
        <span class="grow" />
        <Act
          call={integrationDisconnect}
          input={{ id }}
          confirm={`Disconnect ${s.name}? Its secret and its ledger are forgotten; the asks stay.`}
          done={() => {
            go("/ui/settings/integrations");
            return "Disconnected.";
          }}
        >
          Disconnect
        </Act>
      </Head>
      {secret && <Once name="New secret" text={secret} kept={() => setSecret("")} />}
      <Facts>
        <Fact name="Kind">{s.kind}</Fact>
        <Fact name="It sends to">
          <Code text={s.url} />
        </Fact>
        <Fact name="Last delivery">
          <Time at={s.last_delivery_at} />
        </Fact>
        <Fact name="Last one not signed">
          <Time at={s.last_refused_at} />
        </Fact>
        {s.overlap_until && (
          <Fact name="The old secret ends">
            <Time at={s.overlap_until} />
          </Fact>
        )}
      </Facts>
      <h2>What it sent</h2>
      <Cards
        list={sent}
        label="Deliveries"
        empty="Nothing yet. What is not signed with its secret is not listed."
        row={(d) => (
          <>
            <div>
              <p>
                {inert(d.title) || <span class="dim">no title</span>} <code>{inert(d.event)}</code>
              </p>
              <p class="dim">
                <Time at={d.received_at} /> · {d.repo ?? "no repository"}
                {d.project && <> · project {inert(d.project)}</>}
                {d.reason && <> · {words(d.reason)}</>}
              </p>
            </div>
            <div class="acts">
              <Status of={fates[d.outcome] ?? "ended"} say={d.outcome} />
              {d.ask_id && <a href={"/ui/asks/" + d.ask_id}>ask</a>}
            </div>
          </>
        )}
      />
      {s.kind === "generic" && <Mapping of={s} changed={again} />}
      <h2>What is done with it</h2>
      <Form
        call={integrationUpdate}
        submit="Save"
        said="Saved."
        keep
        done={again}
        read={(f) => ({
          id,
          name: of(f, "name"),
          repo: String(f.get("repo") ?? ""),
          projects: pairs(f, "projects") ?? {},
          label: String(f.get("label") ?? ""),
          bot: String(f.get("bot") ?? ""),
          trusted: f.has("trusted"),
        })}
      >
        {(wrong) => (
          <>
            <Text name="name" label="Name" wrong={wrong} value={s.name} />
            <Text name="repo" label="Repository" wrong={wrong} value={s.repo} place="owner/name" />
            <Text
              name="projects"
              label="Projects"
              hint="project there=owner/name"
              wrong={wrong}
              rows={3}
              code
              value={unpaired(s.projects)}
            />
            <Text name="label" label="Only issues labelled" wrong={wrong} value={s.label} />
            <Text name="bot" label="Your automation there" wrong={wrong} value={s.bot} />
            <Switch name="trusted" on={s.trusted}>
              Work may begin without a person. Everybody who can write there can then have work done.
            </Switch>
          </>
        )}
      </Form>
      <h2>Another secret</h2>
      <Form
        call={integrationRotate}
        submit="Rotate"
        done={(o) => {
          if (o.secret) setSecret(o.secret);
          else tell("It has its new secret.");
          again();
        }}
        read={(f) => ({ id, secret: of(f, "secret"), at_once: f.has("at_once") })}
      >
        {(wrong) => (
          <>
            <Text
              name="secret"
              label="Secret"
              hint="that the system has made; empty: one is made here"
              wrong={wrong}
              type="password"
            />
            <Switch name="at_once">End the one before now, not in 24 hours: it has leaked</Switch>
          </>
        )}
      </Form>
      <Raw call={integrationGet} input={{ id }} of={s} />
    </>
  );
}

// read makes a mapping of a form.
function read(f: FormData): SourceMapping {
  const at = of(f, "when");
  return {
    title: of(f, "title"),
    body: of(f, "body"),
    dedupe_key: of(f, "dedupe_key"),
    project: of(f, "project"),
    url: of(f, "url"),
    sender: of(f, "sender"),
    when: at ? { at, is: lines(f, "values") } : undefined,
  };
}

function Mapping(p: { of: Source; changed: () => void }) {
  const m = p.of.mapping,
    id = p.of.id,
    [out, set] = useState<MappingPreview>();
  const look = (e: { currentTarget: HTMLButtonElement }) => {
    integrationMappingPreview({ id, mapping: read(new FormData(e.currentTarget.form!)) }).then(set, (x) =>
      tell(said(x)),
    );
  };
  return (
    <>
      <h2>How it is read</h2>
      <p class="dim">
        Each field is a JSON pointer (RFC 6901) into what is sent, such as <code>/alert/title</code>.
      </p>
      <Form
        call={integrationMappingSet}
        submit="Use it"
        said="It holds for what comes from now on."
        keep
        done={p.changed}
        read={(f) => ({ id, mapping: read(f) })}
        also={
          <button type="button" onClick={look}>
            Try it on the last ten
          </button>
        }
      >
        {(wrong) => {
          const w = (n: string) => () => wrong("mapping." + n);
          return (
            <>
              <Text name="title" label="Title" wrong={w("title")} value={m?.title} place="/title" />
              <Text name="body" label="Text" wrong={w("body")} value={m?.body} place="/body" />
              <Text name="project" label="Project" wrong={w("project")} value={m?.project} place="/project" />
              <Text
                name="dedupe_key"
                label="The same if this is"
                wrong={w("dedupe_key")}
                value={m?.dedupe_key}
                place="/dedupe_key"
              />
              <Text name="url" label="Page" wrong={w("url")} value={m?.url} place="/url" />
              <Text name="sender" label="Who did it" wrong={w("sender")} value={m?.sender} place="/sender" />
              <Text
                name="when"
                label="An ask only if"
                wrong={(n) => w("when")() ?? w("when.at")() ?? wrong(n)}
                value={m?.when?.at}
                place="/status"
              />
              <Text
                name="values"
                label="is one of"
                wrong={w("when.is")}
                value={m?.when?.is.join(", ")}
                place="firing"
              />
            </>
          );
        }}
      </Form>
      {out && (
        <section aria-label="Preview" role="status">
          <h3>With it, the last would be</h3>
          {out.data.length === 0 ? (
            <Empty>Nothing was sent yet.</Empty>
          ) : (
            <ul class="cards">
              {out.data.map((d) => (
                <li key={d.delivery_id} class="item">
                  <div>
                    <p>
                      <strong>{inert(d.title)}</strong>
                    </p>
                    <p>{inert(d.body.slice(0, 300))}</p>
                    <p class="dim">
                      {d.repo ?? "no repository"}
                      {d.reason && <> · {words(d.reason)}</>}
                    </p>
                  </div>
                  <div class="acts">
                    <Status of={fates[d.outcome] ?? "ended"} say={d.outcome} />
                  </div>
                </li>
              ))}
            </ul>
          )}
        </section>
      )}
    </>
  );
}
