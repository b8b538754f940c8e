// Package journal is the write-ahead log of runs: what was about to be done,
// what came of it, in an order that nobody can change unseen.
//
//	store, err := journal.Open("state/journal.db", journal.Options{})
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//	run, err := store.Create(ctx, journal.Start{Kind: "plan", Name: "refund"})
//	if err != nil {
//		return err
//	}
//	defer run.Close()
//	err = run.AppendWait(ctx, journal.Record{Kind: "intent", Body: body}) // on the disk when nil
//
// # What it holds
//
// All runs of a user stand in one SQLite file (write-ahead log, synchronous
// FULL), which any number of processes may use at once. A run is a sequence of
// records; a [Record] is a kind and a body, whose meaning belongs to the packages
// above. Every record is one line of JSON that carries the hash of the line
// before it, and the first carries that of the run's header: id, plan, catalogue
// and policy. [Store.Verify] and [Verify] walk that chain.
//
// # Durability
//
// Appending queues; [Ticket.Wait] returns once the record is on the disk. One
// goroutine writes for the whole store and puts everything that is queued, of
// all runs, into one transaction with one sync. Nothing is held back for company:
// a record that is not deferred starts a commit at once, unless one is under way.
//
// # Ownership
//
// A run is open for writing in one place at a time: [Store.OpenRun] takes a lock
// that the kernel gives back when the process ends, however it ends. A process
// that does not hold a run can read and follow it, and leave a decision in its
// inbox ([Store.Decide]).
package journal
