package prompt

import (
	"fmt"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/seed"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

// noRefs knows no place: these tests store rows without checking their refs.
type noRefs struct{}

func (noRefs) HasRepo(*db.Tx, string) (bool, error)     { return false, nil }
func (noRefs) HasTemplate(*db.Tx, string) (bool, error) { return false, nil }

func TestOrderAndVariables(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := New(Needs{DB: d, Platform: "platform {{who}}", Refs: noRefs{}})
		err := d.Write(db.WithAccount(t.Context(), "acme"), func(tx *db.Tx) error {
			for _, acct := range []string{"acme", "rival"} {
				if err := seed.Add(tx, seed.Account{ID: acct}); err != nil {
					return err
				}
			}
			if err := seed.Add(tx, seed.User{ID: "ada"}); err != nil {
				return err
			}
			for _, p := range [][4]string{
				{"acme", string(Template), "fast", "template {{who}}"}, {"acme", string(Repo), "r1", "repo {{ who }}"},
				{"acme", string(Account), "", "account {{nobody}} {{who}"},
				{"acme", string(Repo), "r2", "another"}, {"rival", string(Account), "", "a rival's"},
			} {
				if _, err := putPrompt.Exec(tx, putPromptArgs{
					AccountID: p[0], Scope: p[1], Ref: p[2], Prompt: p[3], UpdatedAt: tx.Now, UpdatedBy: "test",
				}); err != nil {
					return err
				}
			}
			for _, v := range [][5]string{
				{"acme", string(Account), "", "who", "account"}, {"acme", string(Repo), "r1", "who", "{{team}}"},
				{"acme", string(Repo), "r2", "who", "r2"},
				{"acme", string(Account), "", "team", "never"}, {"rival", string(Template), "fast", "who", "a rival's"},
			} {
				if _, err := putVar.Exec(tx, putVarArgs{
					AccountID: v[0], Scope: v[1], Ref: v[2], Key: v[3], Value: v[4], CreatedAt: tx.Now,
				}); err != nil {
					return err
				}
			}
			if _, err := putPersonal.Exec(tx, "ada", "person", tx.Now); err != nil {
				return err
			}
			got, err := s.For(tx, "r1", "fast", "ada", "", "further {{who}}")
			want := "platform {{team}}|account {{nobody}} {{who}|repo {{team}}|template {{team}}|person|further {{team}}"
			if text := strings.Join(got, "|"); text != want {
				t.Errorf("a run gets %q, want %q", text, want)
			}
			if err != nil {
				return err
			}
			got, err = s.For(tx, "r3", "default", "")
			if text := strings.Join(got, "|"); text != "platform account|account {{nobody}} {{who}" {
				t.Errorf("another run gets %q", text)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// An account has so many variables and no more; one that there is can still be changed.
func TestVariablesAreBounded(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s, ctx := New(Needs{DB: d, Refs: noRefs{}}), db.WithAccount(t.Context(), "acme")
		err := d.Write(ctx, func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Account{ID: "acme"}); err != nil {
				return err
			}
			for i := range maxVars {
				if _, err := putVar.Exec(tx, putVarArgs{
					AccountID: "acme", Scope: string(Account), Key: fmt.Sprint("v", i), Value: "x", CreatedAt: tx.Now,
				}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		put := func(key string) error {
			_, err := s.set(ctx, setVarIn{varIn: varIn{Scope: Account, Key: key}, Value: "y"})
			return err
		}
		if err := put("more"); fault.From(err).Slug != "too-many-variables" {
			t.Error(err)
		}
		if err := put("v0"); err != nil {
			t.Error(err)
		}
	})
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{"": true, "Be brief.": true, strings.Repeat("x", maxPrompt+1): false,
		"token=abcdef123456": false} {
		if err := Check(text); (err == nil) != ok {
			t.Errorf("%.30q: %v", text, err)
		}
	}
}
