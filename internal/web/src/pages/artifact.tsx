// One artifact: what it is, how long it is kept, and a look at it that cannot run anything.
import { useEffect, useMemo, useState } from "preact/hooks";
import { own, said, stored } from "../api";
import { artifactDelete, artifactGet, artifactShare, type ArtifactDownload } from "../client.gen";
import { NamedTask } from "../cards/named";
import { Actor } from "../cards/who";
import { useOne } from "../list";
import { go, type PageProps } from "../route";
import { inert } from "../ui/ansi";
import { bytes } from "../ui/every";
import { Form } from "../ui/form";
import { number, Text } from "../ui/inputs";
import { Lines } from "../ui/lines";
import { Log } from "../ui/log";
import { anchors, Markdown } from "../ui/markdown";
import { Act, Code, Coming, Empty, Fact, Facts, Head, Id } from "../ui/parts";
import { Raw } from "../ui/raw";
import { Time } from "../ui/time";
import { table } from "../own";

const sees: Record<string, string> = table({
  run: "the account, beside its run",
  account: "the account",
  public: "whoever has a link, too",
});

const mostText = 1 << 20, // bytes of a text that are shown
  mostPicture = 20 << 20;

// Pictures that are nothing but pixels, and texts; a browser is shown nothing else.
const pictures = ["image/png", "image/jpeg", "image/gif", "image/webp"],
  texts = ["text/plain", "text/csv", "text/x-log", "text/x-diff", "application/json", "application/x-ndjson"];

type Look = "picture" | "markdown" | "text" | undefined;

function lookOf(a: ArtifactDownload): Look {
  const type = a.content_type.split(";", 1)[0]!.trim().toLowerCase();
  if (!own(a.url)) return undefined; // at another address, which the page cannot reach
  if (pictures.includes(type)) return a.size <= mostPicture ? "picture" : undefined;
  return type === "text/markdown" ? "markdown" : texts.includes(type) ? "text" : undefined;
}

// below has headings stand below that of the page, under names that nothing else of it has.
const below = () => {
  const ids = anchors();
  return { anchors: (heading: string) => "h-" + ids(heading) };
};

// download has the browser save what an address answers.
function download(a: ArtifactDownload) {
  const link = document.createElement("a");
  link.href = a.url;
  link.download = a.name;
  link.rel = "noreferrer";
  link.click();
}

export default function ArtifactPage(p: PageProps) {
  const id = p.params.id!,
    one = useOne<ArtifactDownload>(id, (signal) => artifactGet({ id }, { signal })),
    a = one.value.value;
  if (!a)
    return (
      <>
        <Head title="Artifact" />
        <Coming of={one} />
      </>
    );
  const look = lookOf(a);
  return (
    <>
      <Head title={inert(a.name)}>
        <span class="grow" />
        <a href="/ui/artifacts">All artifacts</a>
        <Act call={artifactGet} input={{ id }} class="main" done={download}>
          Download
        </Act>
        <Act
          call={artifactDelete}
          input={{ id }}
          class="danger"
          confirm={`Delete ${inert(a.name)} and its bytes? Links to it answer nothing from then on.`}
          done={() => {
            go("/ui/artifacts");
            return "It is deleted.";
          }}
        >
          Delete
        </Act>
      </Head>
      <Facts>
        <Fact name="Type">{inert(a.content_type)}</Fact>
        <Fact name="Size">{bytes(a.size)}</Fact>
        {a.run_id && (
          <Fact name="Run">
            <a href={"/ui/runs/" + a.run_id}>open</a>
          </Fact>
        )}
        {a.task_id && (
          <Fact name="Task">
            <NamedTask id={a.task_id} />
          </Fact>
        )}
        <Fact name="Stored">
          <Time at={a.created_at} /> by <Actor of={a.created_by} />
        </Fact>
        <Fact name="Seen by">{sees[a.visibility] ?? a.visibility}</Fact>
        <Fact name="Deleted">
          <Time at={a.expires_at} />
        </Fact>
        {a.shared_until && (
          <Fact name="Last link ends">
            <Time at={a.shared_until} />
          </Fact>
        )}
        {a.sha256 && (
          <Fact name="SHA-256">
            <Id of={a.sha256} chars={12} />
          </Fact>
        )}
        <Fact name="Id">
          <Id of={a.id} />
        </Fact>
      </Facts>
      {look === "picture" ? <Picture of={a} /> : look ? <Words of={a} look={look} /> : <Unseen of={a} />}
      <Share of={a} again={() => void one.load()} />
      <Raw call={artifactGet} input={{ id }} of={{ ...a, url: "…" }} />
    </>
  );
}

const Unseen = (p: { of: ArtifactDownload }) => (
  <Empty>
    {own(p.of.url)
      ? "There is no look at files of this type or size: one that could run something is not opened here. Download it."
      : "Files of this server lie at another address, which a page cannot look into. Download it."}
  </Empty>
);

// Picture is a picture as it is; one that is none is said to be so.
function Picture(p: { of: ArtifactDownload }) {
  const [broken, fail] = useState(false);
  return broken ? (
    <Empty>
      It is not the picture that it says it is, or its address has ended. Download it, or load the page anew.
    </Empty>
  ) : (
    <p class="look">
      <img src={p.of.url} alt={inert(p.of.name)} referrerpolicy="no-referrer" onError={() => fail(true)} />
    </p>
  );
}

// Words is a text, of a large one its beginning.
function Words(p: { of: ArtifactDownload; look: Look }) {
  const a = p.of,
    lines = useMemo(() => new Lines(), [a.id]),
    [state, set] = useState<{ text?: string; error?: string }>({});
  useEffect(() => {
    const off = new AbortController();
    lines.clear();
    stored(a.url, off.signal, a.size > mostText ? mostText : undefined)
      .then((text = "") => {
        if (p.look === "text") lines.add("out", text || "It is empty.");
        set({ text });
      })
      .catch((e) => {
        if (!off.signal.aborted) set({ error: said(e) });
      });
    return () => off.abort();
  }, [a.url]);
  if (state.error) return <Empty>{state.error} Load the page anew for another look.</Empty>;
  if (state.text === undefined) return <p class="empty" aria-busy="true" />;
  return (
    <section aria-label="Text">
      {a.size > mostText && (
        <p class="dim">
          The first {bytes(mostText)} of {bytes(a.size)}. The rest is in the file.
        </p>
      )}
      {p.look === "markdown" ? (
        <Markdown text={state.text} how={below()} />
      ) : (
        <div class="boxed">
          <Log lines={lines} id="artifact" label={inert(a.name)} />
        </div>
      )}
    </section>
  );
}

// Share makes a link for anybody, and shows it once.
function Share(p: { of: ArtifactDownload; again: () => void }) {
  const [made, set] = useState<{ url: string; url_expires_at: string }>();
  return (
    <section class="sec mt" aria-label="Share">
      <header>
        <h2>Share</h2>
        <p>Anybody who has the link can have the file, until the link ends or the file is deleted.</p>
      </header>
      {made && (
        <p>
          <Code text={made.url} />{" "}
          <span class="dim">
            ends <Time at={made.url_expires_at} />; it is not shown again
          </span>
        </p>
      )}
      <Form
        call={artifactShare}
        read={(f) => ({ id: p.of.id, expires_in_days: number(f, "expires_in_days") })}
        submit="Make a link"
        keep
        done={(o) => {
          set(o);
          p.again();
        }}
      >
        {(wrong) => <Text name="expires_in_days" label="Days" hint="1 to 90" value={7} decimal wrong={wrong} />}
      </Form>
    </section>
  );
}
