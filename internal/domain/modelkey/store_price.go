package modelkey

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/llm"
)

type priceRow struct {
	Provider   string
	Model      string
	Input      int64
	Output     int64
	CacheRead  int64
	CacheWrite int64
}

func (r priceRow) price() llm.Price {
	return llm.Price{Input: r.Input, Output: r.Output, CacheRead: r.CacheRead, CacheWrite: r.CacheWrite}
}

const priceColumns = `provider, model, input, output, cache_read, cache_write FROM prices WHERE account_id = `

var (
	pricesOf = db.Q[priceRow](`SELECT ` + priceColumns + `$1 ORDER BY provider, model`)
	setPrice = db.SWith[setPriceArgs](`INSERT INTO prices (account_id, provider, model, input, output, cache_read, cache_write, created_at)
		VALUES (:account_id, :provider, :model, :input, :output, :cache_read, :cache_write, :created_at)
		ON CONFLICT (account_id, provider, model) DO UPDATE SET input = EXCLUDED.input, output = EXCLUDED.output,
		cache_read = EXCLUDED.cache_read, cache_write = EXCLUDED.cache_write`)
	dropPrice = db.S(`DELETE FROM prices WHERE account_id = $1 AND provider = $2 AND model = $3`)
	priceKey  = db.S(`UPDATE provider_keys SET price = $3 WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`)
)

// setPriceArgs are the parameters of setPrice.
type setPriceArgs struct {
	AccountID, Provider, Model           string
	Input, Output, CacheRead, CacheWrite int64
	CreatedAt                            time.Time
}

func listPrices(tx *db.Tx, p op.PageIn) ([]priceRow, error) {
	b := db.Build(`SELECT `+priceColumns, tx.Account)
	if after := p.After(); len(after) == 2 {
		b.And("(provider, model) > ", db.Tuple(after[0], after[1]))
	}
	return db.Select[priceRow](tx, b.SQL(" ORDER BY provider, model LIMIT ", p.Size()))
}

// labels reads how the keys of an account are called, also of those that are deleted.
var labels = db.Q[labelled](`SELECT id, CASE WHEN user_id = '' THEN label ELSE '' END AS label FROM provider_keys WHERE account_id = $1`)

type labelled struct{ ID, Label string }

// pooledKeys reads the keys of an account's pool that are there.
var pooledKeys = db.Q[PoolKey](`SELECT id, label, created_at FROM provider_keys
	WHERE account_id = $1 AND user_id = '' AND deleted_at IS NULL ORDER BY id`)

// PoolKey is a key of an account's pool.
type PoolKey struct {
	ID, Label string
	CreatedAt time.Time
}

// Pool is the keys of an account's pool, by id, to be told from one another.
func Pool(tx *db.Tx, account string) ([]PoolKey, error) { return pooledKeys.All(tx, account) }
