// Secrets of the account, which every repository gets.
import { secretDelete, secretList, secretSet } from "../../client.gen";
import { Secrets } from "../../cards/secrets";
import { Head } from "../../ui/parts";

export default function AccountSecrets() {
  return (
    <>
      <Head title="Secrets" />
      <p class="dim">
        Runs on every repository get them from the next one on. A <a href="/ui/repos">repository's</a> own of the same
        name wins.
      </p>
      <Secrets at={{}} list={secretList} set={secretSet} drop={secretDelete} />
    </>
  );
}
