// Tokens: what programs sign in with. Their text is shown once.
import { useState } from "preact/hooks";
import { tokenList, tokenMint, tokenRename, tokenRevoke, type Token } from "../../client.gen";
import { useList } from "../../list";
import { useFresh } from "../../ui/every";
import { inert } from "../../ui/ansi";
import { Form } from "../../ui/form";
import { gate } from "../../ui/gate";
import { Cards, number, of, Once, Text } from "../../ui/inputs";
import { Act, Code, Head } from "../../ui/parts";
import { Status } from "../../ui/status";
import { Time } from "../../ui/time";
import { table } from "../../own";

// what each scope allows, by its noun.
const nouns: Record<string, { name: string; read?: string; write?: string }> = table({
  account: {
    name: "Account",
    read: "see the account, its members, notifications",
    write: "change settings, mint tokens, sign-in",
  },
  members: { name: "Members", write: "invite and remove people, set roles" },
  repos: { name: "Repositories", read: "see repositories and policies", write: "add them, turn their switches" },
  issues: { name: "Issues", read: "see issues", write: "file, escalate and hand off" },
  prs: { name: "Pull requests", read: "see changes, reviews, approvals", write: "approve, merge, skip" },
  tasks: { name: "Tasks, plans, asks", read: "see work and what it waits for", write: "file, cancel, answer" },
  runners: {
    name: "Boxes and templates",
    read: "see boxes, checks, prompts",
    write: "add and revoke boxes, set prompts",
  },
  sessions: {
    name: "Sessions and audit",
    read: "see transcripts, costs, the audit log",
    write: "talk to agents at work",
  },
  billing: { name: "Money", read: "see keys, prices and budgets", write: "add keys, set prices and budgets" },
  usage: { name: "Usage", read: "see what was spent" },
  digests: { name: "Digests", read: "read them" },
  artifacts: { name: "Artifacts", read: "download them", write: "upload, share, delete" },
  kb: { name: "Knowledge base", read: "read pages", write: "write pages" },
  dashboards: { name: "Dashboards", read: "see boards", write: "arrange boards" },
  donations: { name: "Donations", read: "see them", write: "give" },
  webhooks: { name: "Webhooks, integrations", read: "see them and what was sent", write: "add, test, remove" },
  secrets: { name: "Secrets", write: "list, set and delete secrets" },
  self: { name: "Yourself", write: "your own token and system prompt" },
  admin: { name: "Platform", read: "look as an operator" },
});

// group is the noun of a scope, and what the scope allows.
function group(scope: string): { noun: string; verb: "read" | "write"; does: string } {
  const [a, b] = scope.split(":"),
    admin = a === "admin",
    noun = admin ? "admin" : (b ?? ""),
    verb = admin ? (b === "read" ? "read" : "write") : a === "write" ? "write" : "read";
  const special: Record<string, string> = {
    "write:self:keys": "your own token of a code host",
    "write:self:prompt": "your own system prompt",
  };
  return {
    noun,
    verb,
    does:
      special[scope] ?? (admin ? "operators: " + scope.slice(6).replaceAll(":", " ") : (nouns[noun]?.[verb] ?? scope)),
  };
}

export default function Tokens() {
  const [mintable, setMintable] = useState<string[]>([]),
    [plain, setPlain] = useState(""),
    [making, setMaking] = useState(false),
    [renaming, setRenaming] = useState("");
  const list = useList<Token>("tokens", async (cursor, signal) => {
    const page = await tokenList({ cursor, per_page: 50 }, { signal });
    setMintable(page.mintable_scopes);
    return page;
  });
  useFresh(30, list);
  const by = new Map<string, string[]>();
  for (const s of mintable) {
    const n = group(s).noun;
    by.set(n, [...(by.get(n) ?? []), s]);
  }
  return (
    <>
      <Head title="Tokens">
        <span class="grow" />
        {!making && (
          <button type="button" class="main" {...gate(tokenMint, () => setMaking(true))}>
            New token
          </button>
        )}
      </Head>
      {plain && (
        <Once name="Token" text={plain} kept={() => setPlain("")}>
          <p class="dim">
            Put it where the program finds it: <Code text={`export YARDMASTER_TOKEN=${plain}`} />
          </p>
        </Once>
      )}
      {making && (
        <section aria-label="New token">
          <h2>New token</h2>
          <p class="dim">It acts for you, in this account alone. Tick no more than it needs.</p>
          <Form
            call={tokenMint}
            submit="Mint it"
            keep
            read={(f) => ({
              name: of(f, "name") ?? null,
              expires_in_days: number(f, "days") ?? null,
              scopes: f.getAll("scope").map(String),
            })}
            done={(o) => {
              setPlain(o.token);
              setMaking(false);
              void list.load();
            }}
            also={
              <button type="button" onClick={() => setMaking(false)}>
                Cancel
              </button>
            }
          >
            {(wrong) => (
              <>
                <Text name="name" label="Name" hint="what it is for" wrong={wrong} focus />
                <Text
                  name="days"
                  label="Ends after"
                  hint="days; empty: never. With a scope over the platform at most 90"
                  wrong={wrong}
                  field="expires_in_days"
                  value={90}
                  decimal
                />
                <div class="scopes">
                  {[...by].map(([noun, scopes]) => (
                    <fieldset key={noun}>
                      <legend>{nouns[noun]?.name ?? noun}</legend>
                      {scopes.map((s) => {
                        const g = group(s);
                        return (
                          <label key={s} class="check">
                            <input type="checkbox" name="scope" value={s} defaultChecked={s === "read:account"} />{" "}
                            <span>
                              {g.does}{" "}
                              <small>
                                <code>{s}</code>
                              </small>
                            </span>
                          </label>
                        );
                      })}
                    </fieldset>
                  ))}
                </div>
                {wrong("scopes") && (
                  <p class="trouble" role="alert">
                    Scopes: {wrong("scopes")!.join(", ")}
                  </p>
                )}
              </>
            )}
          </Form>
        </section>
      )}
      <Cards
        list={list}
        label="Tokens"
        empty={
          <>
            There is no token. Programs and <code>yardmaster login</code> use them.
          </>
        }
        row={(t) => (
          <>
            <div>
              <p>
                <strong>{t.name ? inert(t.name) : "no name"}</strong> <code>{t.prefix}…</code>
              </p>
              <p class="dim">
                made <Time at={t.created_at} /> · used <Time at={t.last_used_at} /> ·{" "}
                {t.expires_iso ? (
                  <>
                    ends <Time at={t.expires_iso} />
                  </>
                ) : (
                  "does not end"
                )}
              </p>
              {t.advice && <p class="trouble">{inert(t.advice)}</p>}
              <details>
                <summary>
                  {t.scopes.length} {t.scopes.length === 1 ? "scope" : "scopes"}
                </summary>
                <p>
                  {t.scopes.map((s) => (
                    <span key={s}>
                      <code>{s}</code>{" "}
                    </span>
                  ))}
                </p>
              </details>
              {renaming === t.id && (
                <Form
                  call={tokenRename}
                  submit="Rename"
                  said="Renamed."
                  done={() => {
                    setRenaming("");
                    void list.load();
                  }}
                  read={(f) => ({ id: t.id, name: of(f, "name") ?? null })}
                >
                  {(wrong) => <Text name="name" label="Name" wrong={wrong} value={t.name} focus />}
                </Form>
              )}
            </div>
            <div class="acts">
              {t.revoked ? (
                <Status of="revoked" />
              ) : t.expires_iso && Date.parse(t.expires_iso) < Date.now() ? (
                <Status of="expired" />
              ) : (
                <>
                  <button
                    type="button"
                    aria-expanded={renaming === t.id}
                    {...gate(tokenRename, () => setRenaming(renaming === t.id ? "" : t.id))}
                  >
                    Rename
                  </button>
                  <Act
                    call={tokenRevoke}
                    input={{ id: t.id }}
                    confirm={`Revoke ${t.name ?? t.prefix}? What uses it is refused from its next request on.`}
                    done={() => {
                      void list.load();
                      return "Revoked.";
                    }}
                  >
                    Revoke
                  </Act>
                </>
              )}
            </div>
          </>
        )}
      />
    </>
  );
}
