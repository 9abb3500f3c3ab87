//go:build !linux

package terminal

// Mute does nothing: elsewhere the echo ends when the password is read.
func Mute(int) error { return nil }

// keepOutput does nothing: elsewhere Ctrl-C may cost the last that is written.
func keepOutput(int) (restore func()) { return func() {} }
