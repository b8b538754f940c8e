// Package dbos is a benchmark alone: the same durable work on Callsheet and on
// DBOS Transact for Go with its SQLite store, in one process on one disk.
//
//	go test -run '^$' -bench . -benchtime 5x
//
// It is a module of its own so that Callsheet does not depend on what it is
// measured against. Both sides use the one version of the SQLite driver that
// the module resolves to.
package dbos
