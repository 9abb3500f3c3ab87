package app

import (
	"path"
	"reflect"

	"yardmaster/internal/api/op"
)

// OpsIn lists the capabilities of the domain whose package is called name, without a
// server behind them; none if it has none. It takes a small part of the time of Ops.
func OpsIn(name string) []op.Op {
	for _, d := range described().all {
		if path.Base(reflect.TypeOf(d).Elem().PkgPath()) == name {
			return d.Ops()
		}
	}
	return nil
}
