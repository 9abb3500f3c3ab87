// The model that a person likes best.
import { providers, selfLlmPrefClear, selfLlmPrefGet, selfLlmPrefSet } from "../client.gen";
import { useOne } from "../list";
import { inert } from "../ui/ansi";
import { Form } from "../ui/form";
import { Choice, of, Text } from "../ui/inputs";
import { Act, Coming, Fact, Facts } from "../ui/parts";
import { Time } from "../ui/time";
import type { Provider } from "./keyform";

export function Liked() {
  const one = useOne("liked", (signal) => selfLlmPrefGet({}, { signal })),
    v = one.value.value;
  if (!v) return <Coming of={one} />;
  return (
    <>
      {v.provider && (
        <Facts>
          <Fact name="Now">
            {v.provider}, {v.model ? inert(v.model) : "its own default"}
          </Fact>
          <Fact name="Since">
            <Time at={v.updated_at} />
          </Fact>
        </Facts>
      )}
      {v.provider && !v.usable && (
        <p class="hold">There is no key for it, of the account or of yours: runs go as the account has it.</p>
      )}
      <Form
        key={v.updated_at}
        call={selfLlmPrefSet}
        submit="Prefer it"
        said="It holds from the next run on."
        keep
        done={() => void one.load()}
        read={(f) => ({ provider: of(f, "provider") as Provider, model: of(f, "model") ?? null })}
        also={
          v.provider && (
            <Act
              call={selfLlmPrefClear}
              input={{}}
              done={() => {
                void one.load();
                return "Runs go as the account has it.";
              }}
            >
              Back to the account's default
            </Act>
          )
        }
      >
        {(wrong) => (
          <>
            <Choice name="provider" label="Provider" wrong={wrong} all={providers} value={v.provider ?? "anthropic"} />
            <Text name="model" label="Model" hint="empty: the provider's default" wrong={wrong} value={v.model} />
          </>
        )}
      </Form>
    </>
  );
}
