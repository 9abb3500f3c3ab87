package run

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/fault"
	"yardmaster/internal/protocol"
)

func TestSecretsAreForTheProcessThatClaimed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx := context.Background()
		value := "the first value"
		f.others.vault = func(tx *db.Tx, repoID string) ([]protocol.Secret, error) {
			if tx.Account == "" || repoID == "" {
				t.Errorf("the vault of repository %q of account %q was asked for", repoID, tx.Account)
			}
			return []protocol.Secret{{Name: "A", Delivery: protocol.DeliverEnv, Value: []byte(value)}}, nil
		}
		mine, other := f.newSealKey(f.boxes[0]), newRecipient(t)
		f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		ask := protocol.SecretsAsk{Run: st.Run, Attempt: 1}
		for _, value = range []string{"the first value", "the second value"} { // again, with the secrets of that time
			got, err := f.Secrets(ctx, f.boxes[0], ask)
			if err != nil || strings.Contains(got.Sealed, value) {
				t.Fatal(got, err)
			}
			text, err := mine.Open(protocol.SecretsPurpose(st.Run), got.Sealed)
			var list []protocol.Secret
			if err == nil {
				err = json.Unmarshal(text, &list)
			}
			if err != nil || len(list) != 1 || string(list[0].Value) != value {
				t.Fatalf("%s %v", text, err)
			}
		}
		f.setSealKey(f.boxes[0], other.Public())
		if _, err := f.Secrets(ctx, f.boxes[0], ask); !fault.IsKind(err, fault.Forbidden) {
			t.Error("another process got them:", err)
		}
		f.setSealKey(f.boxes[0], mine.Public())
		if _, err := f.Secrets(ctx, f.boxes[1], ask); !fault.IsKind(err, fault.NotFound) {
			t.Error("another box got them:", err)
		}
		f.write(func(tx *db.Tx) error {
			_, err := f.Revoked(tx, f.boxes[0])
			return err
		})
		if _, err := f.Secrets(ctx, f.boxes[0], ask); !fault.IsKind(err, fault.NotFound) {
			t.Error("a run that is over got them:", err)
		}
	})
}
