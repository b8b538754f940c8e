// Package mcp makes the tools of a Model Context Protocol server into tools of
// Callsheet, over stdio (a command that is started and watched) or streamable
// HTTP.
//
//	src, err := mcp.Open(ctx, mcp.Config{
//		Name:    "files",
//		Command: []string{"mcp-server-filesystem", "/srv/data"},
//		Trust:   true, // believe its annotations: read-only, idempotent, …
//	})
//	if err != nil {
//		return err
//	}
//	defer src.Close()
//	set, err := tool.NewSet(src.Tools()...)
//
// # What a call gives
//
// A result is its structuredContent if there is any, else the one text block as
// a string ([Config].ParseJSON reads that text as strict JSON), else the list
// of content blocks as they are. It is taken from the raw message, so that
// 9007199254740993 stays itself. A reply with isError, or a JSON-RPC error, is
// a [tool.Failure].
//
// # Servers that die
//
// A server that dies is started again when the next call needs it, at most
// [Config].RestartsPerMinute times. A call that had been sent ends as a failure
// that is Lost with code "connection_lost": whether it happened is not known,
// and the machine makes "uncertain" of it or a retry (spec/plan.md §3). A call
// that was never sent is a retryable failure. A session that ended is never
// used again.
//
// # What was checked is what runs
//
// The tools are frozen when the source is opened. After a restart, and whenever
// the server says that its list changed, the definitions are read again; a call
// of a tool whose definition is no longer the frozen one fails with
// [tool.CodeToolChanged] before anything is sent, and the machine makes "denied" of
// it (spec/hostile.md 32, 33).
//
// # Bounds
//
// A message is refused once it is longer than [Config].MaxOutput and an
// envelope. Over stdio the server is then stopped, because the rest of the line
// cannot be told from what follows; over HTTP the answer is cut. Lines on
// stdout that are no JSON-RPC are dropped and counted; after 1000 the server is
// stopped. A child gets an empty environment plus an allow-list and its own
// process group, and is killed as a group; a child that leaves the group and
// closes its streams outlives it, except that on Linux the server itself dies
// with Callsheet even when Callsheet is killed.
package mcp
