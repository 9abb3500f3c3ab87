package keys_test

import (
	"fmt"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/seal"
	"yardmaster/internal/seal/keys"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestStatements(t *testing.T) { dbtest.Declared(t) }

// column is the meta table as if all of it were sealed.
var column = keys.Column{
	Table: "meta", Name: "value",
	Count:   db.Q[keys.Held](keys.Tally + `(SELECT value AS sealed FROM meta) AS m GROUP BY 1`),
	List:    keys.Listing(db.Q[keys.Row](`SELECT key, '' AS account, value AS sealed FROM meta WHERE key > $1 ORDER BY key LIMIT $2`)),
	Put:     keys.Replacing(db.S(`UPDATE meta SET value = $3 WHERE key = $1 AND value = $2`)),
	Purpose: func(r keys.Row) string { return r.Key },
}

var (
	add = db.S(`INSERT INTO meta (key, value) VALUES ($1, $2)`)
	set = db.S(`UPDATE meta SET value = $2 WHERE key = $1`)
)

func rings(t *testing.T) (old, young, both *seal.Keyring) {
	t.Helper()
	old, young = seal.New(), seal.New()
	both, err := young.Before(old)
	if err != nil {
		t.Fatal(err)
	}
	return old, young, both
}

func fill(t *testing.T, d *db.DB, from, n int, value func(key string) string) {
	t.Helper()
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		for i := range n {
			key := fmt.Sprintf("%05d", from+i)
			if _, err := add.Exec(tx, key, value(key)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Values are moved over many batches; those that no key opens stay as they are,
// are named, and stop nothing.
func TestRotate(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		old, young, both := rings(t)
		lost := seal.New()
		fill(t, d, 0, 450, func(key string) string { return old.Seal(key, []byte("value "+key)) })
		fill(t, d, 450, 201, func(key string) string { return lost.Seal(key, nil) })
		fill(t, d, 651, 10, func(string) string { return "v1.damaged" })
		fill(t, d, 661, 5, func(key string) string { return young.Seal(key, []byte("value "+key)) })
		columns := []keys.Column{column}

		census, err := keys.Take(t.Context(), d, both, columns)
		if err != nil || census.Under(old.ID()) != 450 || census.Under(lost.ID()) != 201 || census.Under(young.ID()) != 5 ||
			census.Under(keys.Unopened) != 10 || census.Total() != 666 || census.Outside(both) != 211 {
			t.Fatalf("%v, %v", census, err)
		}
		if err := keys.Opens(both, census); err != nil {
			t.Error(err)
		}
		if err := keys.Opens(seal.New(), census); err == nil || !strings.Contains(err.Error(), old.ID()) {
			t.Errorf("a key that opens nothing: %v", err)
		}
		for _, want := range []int{450, 0} {
			moved := 0
			stuck, err := keys.Rotate(t.Context(), d, both, columns, func(_ string, n int) { moved += n })
			if err != nil || moved != want || len(stuck) != 211 || stuck[0].Row != "00450" ||
				!strings.Contains(stuck[0].Err.Error(), lost.ID()) {
				t.Fatalf("%d moved, %d stuck, %v", moved, len(stuck), err)
			}
		}
		if census, err = keys.Take(t.Context(), d, young, columns); err != nil || census.Under(old.ID()) != 0 ||
			census.Under(young.ID()) != 455 || census.Total() != 666 {
			t.Fatalf("%v, %v", census, err)
		}
		err = d.Read(t.Context(), func(tx *db.Tx) error {
			rows, err := column.List(tx, "", 1000)
			for _, r := range rows {
				if plain, err := young.Unseal(r.Key, r.Sealed); err == nil && string(plain) != "value "+r.Key {
					t.Errorf("%s is %q", r.Key, plain)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A value that a server writes while values are moved stays as it was written.
func TestRotateBesideAServer(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		old, _, both := rings(t)
		fill(t, d, 0, 900, func(key string) string { return old.Seal(key, []byte("old")) })
		written := make(chan error, 1)
		go func() {
			for i := 899; i >= 0; i -= 3 {
				key := fmt.Sprintf("%05d", i)
				err := d.Write(t.Context(), func(tx *db.Tx) error {
					_, err := set.Exec(tx, key, old.Seal(key, []byte("new")))
					return err
				})
				if err != nil {
					written <- err
					return
				}
			}
			written <- nil
		}()
		columns := []keys.Column{column}
		if _, err := keys.Rotate(t.Context(), d, both, columns, func(string, int) {}); err != nil {
			t.Fatal(err)
		}
		if err := <-written; err != nil {
			t.Fatal(err)
		}
		if _, err := keys.Rotate(t.Context(), d, both, columns, func(string, int) {}); err != nil {
			t.Fatal(err)
		}
		err := d.Read(t.Context(), func(tx *db.Tx) error {
			rows, err := column.List(tx, "", 1000)
			for i, r := range rows {
				want := "old"
				if i%3 == 2 {
					want = "new"
				}
				if plain, err := both.Unseal(r.Key, r.Sealed); err != nil || string(plain) != want || seal.KeyOf(r.Sealed) != both.ID() {
					t.Errorf("%s is %q, %v", r.Key, plain, err)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// Values from before keys had ids are known by the key that opens them, and
// moved like the others.
func TestValuesThatNameNoKey(t *testing.T) {
	const before = "v1.BKiyl1HSN8Os9z86n4uhY4MX3HG3cr8gkjj9vn_0G5E2pUS9VeuG" // of the key of 32 bytes ab
	old, err := seal.Parse(strings.Repeat("ab", 32))
	if err != nil {
		t.Fatal(err)
	}
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			_, err := add.Exec(tx, "bus-keys", before)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		columns := []keys.Column{column}
		if c, err := keys.Take(t.Context(), d, nil, columns); err != nil || c.Total() != 1 || c.Under(keys.Unopened) != 1 ||
			!strings.Contains(keys.Wanted(c), "from before keys had ids") {
			t.Errorf("without a key: %v, %v", c, err)
		}
		c, err := keys.Take(t.Context(), d, seal.New(), columns)
		if err == nil {
			err = keys.Opens(seal.New(), c)
		}
		if err == nil || !strings.Contains(err.Error(), "from before keys had ids") {
			t.Errorf("with another key: %v", err)
		}
		both, err := seal.New().Before(old)
		if err != nil {
			t.Fatal(err)
		}
		if c, err = keys.Take(t.Context(), d, both, columns); err != nil || c.Under(old.ID()) != 1 || keys.Opens(both, c) != nil {
			t.Errorf("with its key: %v, %v", c, err)
		}
		if stuck, err := keys.Rotate(t.Context(), d, both, columns, func(string, int) {}); err != nil || stuck != nil {
			t.Errorf("%+v, %v", stuck, err)
		}
		if c, err = keys.Take(t.Context(), d, both.Without(old.ID()), columns); err != nil || c.Under(both.ID()) != 1 || c.Total() != 1 {
			t.Errorf("moved: %v, %v", c, err)
		}
	})
}
