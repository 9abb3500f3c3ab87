package certificate

import (
	"context"
	"log/slog"

	"go.uber.org/zap/zapcore"
)

// core is a core of zap, as certmagic wants one, that writes into the server's log. What is no
// warning is for who looks for a fault.
type core struct{ to *slog.Logger }

func level(l zapcore.Level) slog.Level {
	if l >= zapcore.WarnLevel {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// Enabled implements zapcore.Core.
func (c core) Enabled(l zapcore.Level) bool { return c.to.Enabled(context.Background(), level(l)) }

// With implements zapcore.Core.
func (c core) With(fields []zapcore.Field) zapcore.Core { return core{c.to.With(attrs(fields)...)} }

// Check implements zapcore.Core.
func (c core) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return to
}

// Write implements zapcore.Core.
func (c core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	c.to.Log(context.Background(), level(e.Level), "certificate: "+e.Message, attrs(fields)...)
	return nil
}

// Sync implements zapcore.Core.
func (c core) Sync() error { return nil }

func attrs(fields []zapcore.Field) (out []any) {
	into := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(into)
		if v, there := into.Fields[f.Key]; there {
			out = append(out, f.Key, v)
		}
	}
	return out
}
