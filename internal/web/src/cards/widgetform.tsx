// What a widget of a board is to show: nothing that the server would refuse is offered.
import { useState } from "preact/hooks";
import type { DashboardWidgetSpec } from "../client.gen";
import type { Problems } from "../ui/form";
import { of, Choice, Text } from "../ui/inputs";
import { kindOf, narrows, sizeOf, sizes, sources, windows, type Kind, type Source, type Window } from "./sources";
import { useRepos } from "../whole";

const right = () => undefined;

export function WidgetForm(p: {
  of: DashboardWidgetSpec | undefined;
  width: number | undefined;
  done: (spec: DashboardWidgetSpec, w: number) => void;
}) {
  const was = p.of,
    [source, setSource] = useState<Source | "">(was ? (was.source ?? "") : "tasks_filed"),
    [kind, setKind] = useState<Kind>(was?.kind ?? "stat"),
    [wrong, setWrong] = useState<Problems>({});
  const repos = useRepos();
  const about = source ? sources[source] : undefined,
    fits = about && !about.kinds.includes(kind) ? about.kinds[0]! : about ? kind : "markdown",
    names = (repos.value.value?.data ?? []).map((r) => r.full_name);
  return (
    <form
      noValidate
      autocomplete="off"
      onSubmit={(e) => {
        e.preventDefault();
        const f = new FormData(e.currentTarget),
          text = of(f, "text");
        const found: Problems = {};
        if (!about && !text) found["text"] = ["Write something."];
        if (!about && text && text.length > 10_000) found["text"] = ["A text has at most 10,000 characters."];
        if ((of(f, "title")?.length ?? 0) > 120) found["title"] = ["A heading has at most 120 characters."];
        setWrong(found);
        if (Object.keys(found).length) return;
        const spec: DashboardWidgetSpec = { kind: fits },
          title = of(f, "title"),
          repo = of(f, "repo");
        if (title) spec.title = title;
        if (source) spec.source = source;
        if (about && !about.now) spec.window = of(f, "window") as Window;
        if (source && narrows(fits, source) && repo) spec.repo = repo;
        if (!about && text) spec.text = text;
        p.done(spec, Number(f.get("width")) || sizeOf(fits)[0]);
      }}
    >
      <Choice
        name="source"
        label="What it shows"
        wrong={right}
        value={source}
        all={[...Object.entries(sources).map(([k, v]) => [k, v.name] as const), ["", "a text of yours"] as const]}
        onPick={(v) => setSource(v as Source | "")}
      />
      {about ? (
        <Choice
          key={source}
          name="kind"
          label="How"
          wrong={right}
          value={fits}
          all={about.kinds.map((k) => [k, kindOf(k, source || undefined)] as const)}
          onPick={(v) => setKind(v as Kind)}
        />
      ) : (
        <Text name="text" label="Text" hint="Markdown" rows={6} value={was?.text} wrong={(field) => wrong[field]} />
      )}
      {about && !about.now && (
        <Choice
          name="window"
          label="Looks back"
          wrong={right}
          value={was?.window ?? "7d"}
          all={Object.entries(windows)}
        />
      )}
      {source && narrows(fits, source) && (
        <Choice
          key={names.length}
          name="repo"
          label="Of"
          wrong={right}
          value={was?.repo ?? ""}
          all={[
            ["", "every repository"] as const,
            ...[...new Set([...(was?.repo ? [was.repo] : []), ...names])].map((n) => [n, n] as const),
          ]}
        />
      )}
      <Text
        name="title"
        label="Heading"
        hint="empty: what it shows"
        wrong={(field) => wrong[field]}
        value={was?.title}
      />
      <Choice
        key={fits}
        name="width"
        label="Width"
        wrong={right}
        value={String(p.width ?? sizeOf(fits)[0])}
        all={sizes}
      />
      <div class="acts">
        <button type="submit" class="main">
          {was ? "Change it" : "Add it"}
        </button>
      </div>
    </form>
  );
}
