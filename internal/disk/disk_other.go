//go:build !unix

// Package disk makes durable what os leaves to the system.
package disk

// SyncDir does nothing: directories cannot be synced here.
func SyncDir(string) error { return nil }
